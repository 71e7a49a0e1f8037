//! System calls: which processes wait in which calls, for what, and who has the processors
//! meanwhile.
//!
//! Calls are followed by [`calls`]; here they are judged.

mod findings;

use ::calls::{CallWatch, Tracing};

use ::findings::words::plural;
use ::findings::{Diagnosis, Found, Unseen};

/// What the watch found.
pub fn diagnose(watch: &CallWatch) -> Diagnosis {
    let count = usize::try_from(watch.count()).unwrap_or(usize::MAX);
    let seconds = core::time::Duration::from_nanos(watch.ns).as_secs_f64();
    let own = ::findings::words::percent(watch.own_ns, watch.ns);
    let looked_at = vec![format!(
        "{} of {} in {seconds:.1} s; the watch itself took {own} of one processor",
        plural(count, "system call"),
        watch.processes.len().max(1).to_string()
            + if watch.processes.len() > 1 { " processes" } else { " process" },
    )];
    let mut unseen = unseen(watch);
    unseen.sort();
    let findings = findings::all(watch).into_iter().map(Found::from).collect();
    Diagnosis { looked_at, findings, unseen, ..Diagnosis::default() }.ranked()
}

fn unseen(watch: &CallWatch) -> Vec<Unseen> {
    let mut unseen = Vec::new();
    let mut add = |what: String, needs: &str| {
        unseen.push(Unseen { what, needs: needs.to_owned() });
    };
    let room = "fewer at the same time: --pid or a command instead of all processes";
    match &watch.tracing {
        Tracing::Refused(needs) => add("system calls".to_owned(), needs),
        Tracing::Seen { lost_calls, lost_turns, lost_pointers } => {
            if *lost_calls > 0 {
                let what = "records of calls that the kernel did not hand out: counts are too low";
                add(format!("{lost_calls} {what} by half as many at most"), room);
            }
            if *lost_turns > 0 {
                let what = "records of what processors turned to: waits lack reasons";
                add(format!("{lost_turns} {what}"), room);
            }
            if *lost_pointers > 0 {
                add(format!("{lost_pointers} paths and addresses of calls"), room);
            }
        }
    }
    if let Some(needs) = &watch.no_pointers {
        add("paths of calls, and addresses of connections that are short".to_owned(), needs);
    }
    if watch.has_foreign_numbers {
        add(
            "what threads wait for, and who has their processors".to_owned(),
            "the machine's own process ids: outside of a container",
        );
    }
    if watch.left_out > 0 {
        add(format!("{} details for which there was no space", watch.left_out), room);
    }
    unseen
}
