//! `wirespool find`.

mod flags;
mod form;
mod remote;
mod source;
mod summary;

use core::ops::ControlFlow;
use std::io::Write;

use ::extract::{FindReport, Options, Sought};
use ::flags::fields::field;
use ::found::{Event, Found};
use ::remote::Wanted;
use host::{StopFlag, SystemClock};
use query::Query;

pub(crate) use self::flags::Flags;
use self::flags::Order;
use self::form::Form;
use self::source::Source;
use crate::answered::Answered;
use crate::failure::{Outcome, Usage, Verdict, of_extract};
use crate::progress::{Progress, say, say_lines};
use crate::remote::{Asked, Place, first_given, refused};
use crate::{answered, arguments, stdout};

pub(crate) fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    if flags.remote.is_given() {
        check_remote(flags)?;
    }
    let Asked { place, words } = flags.remote.asked(flags.volume.as_deref(), &flags.query)?;
    let text = flags.naming.query_text(&words)?;
    let query = arguments::query_with(&text, &flags.atlas)?;
    let source = match place {
        Place::Here(volume) => {
            let mut options = flags.reading.options(volume)?;
            flags.reading.catch_up(&mut options);
            Source::Here(options)
        }
        Place::There(there) => {
            check_query(&query)?;
            Source::There(Box::new(there.with_query(text)))
        }
    };
    let answered = match (flags.top.as_deref(), &source) {
        (Some(name), source) => summary::top(flags, source, &query, name)?,
        (None, Source::Here(options)) if flags.plot => summary::plot(flags, options, &query)?,
        (None, source) => list(flags, source, &query)?,
    };
    if let Some(cost) = answered.explain.as_ref().filter(|_| flags.explain) {
        let text =
            if flags.json { session_view::explain_json(cost) } else { session_view::explain(cost) };
        say_lines(&text);
    }
    if !answered.is_whole || stdout::is_terminal() {
        say_lines(&answered.said);
    } else if answered.is_empty {
        say("no session matches");
    }
    if let Some(hint) = &answered.hint {
        say_lines(hint);
    }
    // A limit was asked for: reaching it is no verdict.
    let is_limited = flags.limit.is_some();
    Ok(Verdict::of(if is_limited { answered.state_within_limit } else { answered.state }))
}

/// Refuses what a service cannot do.
fn check_remote(flags: &Flags) -> anyhow::Result<()> {
    let own = [(flags.plot, "--plot"), (flags.explain, "--explain")];
    if let Some(flag) = first_given(&own).or_else(|| flags.reading.given()) {
        return Err(refused(flag).into());
    }
    if let Order::Sorted(_) = flags.order()?
        && let Some(name) = flags.sort.as_deref().and_then(|sort| sort.split(':').next())
        && field(name)?.needs_atlas()
    {
        let text = format!("--sort {name} has no meaning with --remote: a service has no --mmdb");
        return Err(Usage(text).into());
    }
    Ok(())
}

/// The same of what is asked.
fn check_query(query: &Query) -> Result<(), Usage> {
    match query.all_needing_atlas().into_iter().next() {
        None => Ok(()),
        Some(field) => Err(Usage(format!(
            "the field {} has no meaning with --remote: a service has neither --mmdb nor --tags",
            field.name
        ))),
    }
}

/// Shows the sessions themselves.
fn list(flags: &Flags, source: &Source, query: &Query) -> anyhow::Result<Answered> {
    let columns = flags.columns()?;
    let order = flags.order()?;
    let mut form = Form::new(flags, columns)?;
    let mut out = stdout::buffered();
    out.write_all(form.heading().as_bytes())?;
    let mut take = |found: &Found| form.take(found, &mut out);
    let answered = match source {
        Source::Here(options) => list_here(flags, options, (query, order), &mut take)?,
        Source::There(there) => {
            let order = match order {
                Order::OldestFirst => None,
                Order::NewestFirst => Some(("order", "newest".to_owned())),
                Order::Sorted(_) => flags.sort.clone().map(|sort| ("sort", sort)),
            };
            let wanted = Wanted { limit: flags.limit, order, ..Wanted::default() };
            remote::sessions(there, &wanted, &mut take)?
        }
    };
    form.finish(&mut out)?;
    out.flush()?;
    Ok(answered)
}

/// Calls `take` with the sessions of a volume of this machine in their order.
fn list_here(
    flags: &Flags,
    options: &Options,
    (query, mut order): (&Query, Order),
    take: &mut dyn FnMut(&Found) -> anyhow::Result<()>,
) -> anyhow::Result<Answered> {
    let newest_first = matches!(order, Order::NewestFirst);
    let mut report = if let Order::Sorted(sorted) = &mut order {
        search(flags, options, &Sought::new(query), &mut |found| {
            sorted.push(found);
            Ok(())
        })?
    } else {
        let sought = Sought { limit: flags.limit, newest_first, ..Sought::new(query) };
        search(flags, options, &sought, take)?
    };
    if let Order::Sorted(sorted) = order {
        if sorted.left_out > 0 {
            answered::warn_of_left_out(sorted.left_out);
            report.completeness.stopped = true;
        }
        report.completeness.limited = sorted.is_limited;
        report.sessions = 0;
        for found in sorted.finish() {
            take(&found)?;
            report.sessions += 1;
        }
    }
    Ok(Answered::of_find(&report, "session", query))
}

/// Calls `take` with the sessions of the answer.
fn search(
    flags: &Flags,
    options: &Options,
    sought: &Sought<'_>,
    take: &mut dyn FnMut(&Found) -> anyhow::Result<()>,
) -> anyhow::Result<FindReport> {
    let stop = StopFlag::install()?;
    let mut taken: anyhow::Result<()> = Ok(());
    let mut progress = Some(Progress::new("find"));
    // A bar has no place among the lines of an answer.
    let ends_at_first = stdout::is_terminal() && flags.sort.is_none();
    let report = ::extract::find_columns(options, sought, &SystemClock, &mut |event| {
        match event {
            Event::Found(found) => {
                if let Some(progress) = progress.take_if(|_| ends_at_first) {
                    progress.finish();
                }
                if taken.is_ok() {
                    taken = take(found);
                }
            }
            Event::Searched { parts, of } => {
                if let Some(progress) = &mut progress {
                    progress.segments(parts, of);
                }
            }
        }
        if stop.is_set() || taken.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    if let Some(progress) = progress {
        progress.finish();
    }
    let report = report.map_err(|error| of_extract(&options.volume, error))?;
    taken?;
    Ok(report)
}
