//! `wirespool top --once`: looks until everything was seen, and prints it.

use ::tui::{Ask, At, Page, Pages as _, Tab};
use host::{StopFlag, SystemClock};
use talkers::Moment;
use units::{Clock, NANOS_PER_SECOND, Sleep};

use super::flags::Flags;
use super::pages::TopPages;
use super::tabs::TABS;
use crate::failure::{Outcome, Verdict};
use crate::progress::Progress;
use crate::stdout;

/// Lines of a table; JSON has all.
const LINES: usize = 20;
/// Between two looks whether everything was seen.
const NAP_NS: i64 = NANOS_PER_SECOND / 20;

/// A grouping of a tab, by their places, with what it shows.
struct Shown {
    tab: &'static Tab,
    by: &'static str,
    page: Page,
}

pub(super) fn run(
    flags: &Flags,
    pages: &mut TopPages,
    at: Option<i64>,
    stop: &StopFlag,
) -> Outcome {
    let at = at.map_or(At::Now, At::Second);
    let query = flags.query.trim();
    wait(flags, pages, at, stop);
    let wanted = wanted(flags).into_iter();
    let shown: Vec<Shown> = wanted
        .filter_map(|(tab, grouping)| {
            let page = pages.page(&Ask { tab, grouping, query, at });
            let tab = TABS.get(tab)?;
            Some(Shown { tab, by: tab.groupings.get(grouping)?, page })
        })
        .collect();
    stdout::print(&if flags.json { as_json(&shown) } else { as_text(&shown) })?;
    Ok(Verdict::Clean)
}

fn tabs(flags: &Flags) -> impl Iterator<Item = (usize, &'static Tab)> {
    TABS.iter().enumerate().filter(|(_, tab)| flags.tab.is_none_or(|name| name == tab.name))
}

/// Places of what is printed.
fn wanted(flags: &Flags) -> Vec<(usize, usize)> {
    let by = flags.by.as_deref();
    let groupings = tabs(flags).flat_map(|(tab, it)| {
        let groupings = it.groupings.iter().enumerate();
        let is_wanted = move |(place, name): &(usize, &&str)| match by {
            Some(by) => **name == by,
            None => flags.json || *place == 0,
        };
        groupings.filter(is_wanted).map(move |(grouping, _)| (tab, grouping))
    });
    groupings.collect()
}

/// Looking begins with the first question.
fn wait(flags: &Flags, pages: &mut TopPages, at: At, stop: &StopFlag) {
    let begun_ns = SystemClock.boottime_ns();
    let duration_ns = units::nanos(flags.duration);
    let mut progress = Progress::new("top");
    while !stop.is_set() {
        let ask = |tab| Ask { tab, grouping: 0, query: "", at };
        // Each is asked, so that all are looked at meanwhile.
        let waiting = tabs(flags).filter(|(tab, _)| !pages.is_ready(&ask(*tab))).count();
        let now_ns = SystemClock.boottime_ns();
        let is_time = !pages.is_live() || now_ns - begun_ns >= duration_ns;
        if waiting == 0 && is_time {
            break;
        }
        progress.text(&|| "looking".to_owned());
        SystemClock.sleep_until(now_ns + NAP_NS);
    }
    progress.finish();
}

fn as_json(shown: &[Shown]) -> String {
    let second = shown.iter().find_map(|shown| shown.page.second);
    let time = second.map_or_else(|| SystemClock.realtime(), |second| Moment(second).end());
    let sheets = shown.iter().map(|shown| (shown.tab.name, shown.by, &shown.page.sheet));
    machine_view::sheets_json(time.0, sheets)
}

fn as_text(shown: &[Shown]) -> String {
    let text = |Shown { tab, by, page }: &Shown| {
        let title = format!("{} by {by}  {}", tab.name, page.time);
        let mut lines = vec![title.trim_end().to_owned()];
        lines.extend(page.head.iter().filter(|line| !line.is_empty()).cloned());
        lines.push(page.sheet.text(LINES, stdout::width()));
        lines.join("\n")
    };
    shown.iter().map(text).collect::<Vec<_>>().join("\n")
}
