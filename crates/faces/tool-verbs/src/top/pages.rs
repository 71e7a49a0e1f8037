//! What each tab shows.

use std::sync::Arc;

use ::connections::{Track, Watch};
use ::tui::{Ask, At, Page, Pages, Tab};
use ::vitals::profile::By;
use format::session_row::SessionRow;
use host::SystemClock;
use machine_view::{Sheet, SocketGrouping};
use query::Query;
use talkers::{Limits, Moment, Talkers};
use units::Clock;
use wire::{FiveTuple, Protocol};

use super::saved;
use super::selected::Selected;
use super::tabs::{TABS, Wanted, wanted};
use crate::failure::line;
use verbs::top::feed::{Feed, Origin};
use verbs::top::watchers::{Watchers, Worked};

/// Seconds after which a second is over for certain: of an interface, and of a recorder, which
/// keeps packets for a second before it writes them.
const LATE: (i64, i64) = (2, 4);

/// Makes the pages.
pub(super) struct TopPages {
    title: String,
    origin: Origin,
    limits: Limits,
    /// Lines of who talks; what has least is left out.
    lines_max: usize,
    /// Why there is no traffic, where there is none.
    feed: Result<Feed, String>,
    watchers: Watchers,
    selected: Selected,
}

impl TopPages {
    pub(super) fn new(
        title: String,
        origin: Origin,
        limits: Limits,
        lines_max: usize,
    ) -> anyhow::Result<Self> {
        let newest = newest_of(&origin)?;
        let feed = match Feed::start(&origin, newest, limits) {
            Ok(feed) => Ok(feed),
            // All else can be seen without.
            Err(error) if matches!(origin, Origin::Interfaces(_)) => Err(line(&error)),
            Err(error) => return Err(error),
        };
        let (watchers, selected) = (Watchers::new()?, Selected::default());
        Ok(Self { title, origin, limits, lines_max, feed, watchers, selected })
    }

    /// Packets come as they pass.
    pub(super) fn is_live(&self) -> bool {
        match &self.origin {
            Origin::Interfaces(_) => true,
            Origin::Volume { is_growing, .. } => *is_growing,
            Origin::File(_) => false,
        }
    }

    /// Whether what a tab shows was looked at once, and all of a file is read.
    pub(super) fn is_ready(&mut self, ask: &Ask<'_>) -> bool {
        match wanted(ask.tab, ask.grouping) {
            Some(Wanted::Talkers(_) | Wanted::Dns(_)) => {
                self.go_to(ask.at);
                self.is_live() || self.feed.as_ref().is_ok_and(|feed| feed.met().is_over)
            }
            Some(Wanted::Disk(_)) => self.watchers.disks.seen().is_some(),
            Some(Wanted::Cpu(..)) => self.watchers.processors.seen().is_some(),
            Some(Wanted::Sockets(_)) => self.watchers.sockets.seen().is_some(),
            Some(Wanted::Host(_)) => self.watchers.vitals.seen().is_some(),
            Some(Wanted::Recorder(_)) => self.watchers.recorders.seen().is_some(),
            None => true,
        }
    }

    /// Reads what is about another moment, where it is not there already.
    fn go_to(&mut self, at: At) {
        let At::Second(second) = at else { return };
        if matches!(self.origin, Origin::Interfaces(_)) {
            return;
        }
        let moment = Moment(second);
        if self.feed.as_ref().is_ok_and(|feed| feed.covers(moment)) {
            return;
        }
        self.feed =
            Feed::start(&self.origin, Some(moment), self.limits).map_err(|error| line(&error));
    }

    /// The last second that is over for certain, of what is live: time goes on where no packet
    /// comes, too.
    fn now(&self) -> Option<Moment> {
        let late = match &self.origin {
            Origin::Interfaces(_) => LATE.0,
            Origin::Volume { is_growing: true, .. } => LATE.1,
            _ => return None,
        };
        Some(Moment::of(SystemClock.realtime()).plus(-late))
    }

    /// The second that is shown.
    fn moment(&self, at: At, newest: Option<Moment>) -> Option<Moment> {
        match at {
            At::Second(second) => Some(Moment(second)),
            At::Now => newest.max(self.now()),
        }
    }

    /// A page made from packets.
    fn traffic(
        &mut self,
        ask: &Ask<'_>,
        sheet: impl Fn(&Talkers, Moment, (&Query, &Selected)) -> Sheet,
    ) -> Page {
        self.go_to(ask.at);
        let feed = match &self.feed {
            Ok(feed) => feed,
            Err(why) => {
                let notes = vec![format!("packets are not seen: {why}")];
                return Page { sheet: Sheet { notes, ..Sheet::default() }, ..Page::default() };
            }
        };
        if let Some(now) = self.now() {
            feed.advance(now);
        }
        let met = feed.met();
        let talkers = feed.talkers();
        let held = talkers.held();
        let Some(moment) = self.moment(ask.at, held.newest()) else {
            let so_far = if met.is_over { "no packets" } else { "reading" };
            let sheet = Sheet { notes: met.notes, ..Sheet::default() };
            return Page { head: vec![so_far.to_owned()], sheet, ..Page::default() };
        };
        let query = query_of(ask);
        let by_second = talkers.bytes_by_second(moment, machine_view::HEAD_SECONDS);
        // What a recorder adds meanwhile has no rows yet.
        let is_past = !self.is_live() || ask.at != At::Now;
        if let (Origin::Volume { options, .. }, true) = (&self.origin, is_past) {
            self.selected.ask(options, (&query, ask.query), moment);
        } else {
            self.selected = Selected::default();
        }
        let mut sheet = sheet(&talkers, moment, (&query, &self.selected));
        sheet.notes.extend(self.selected.note());
        // There are no lines, and rates of nothing need no note.
        if let Some(outside) = met.outside(moment) {
            sheet.notes = vec![outside];
        }
        sheet.notes.extend(met.notes);
        if met.dropped > 0 {
            let packets = page::text::plural(met.dropped, "packet");
            sheet.notes.push(format!("{packets} not seen: the kernel dropped them here"));
        }
        let mut time = page::text::clock_time(moment.end());
        if !self.is_live() && !met.is_over {
            time.push_str(" reading");
        } else if ask.at == At::Now && self.is_live() {
            time.push_str(" now");
        }
        let totals = machine_view::traffic_head(&held, &by_second);
        Page { head: totals, sheet, second: Some(moment.0), time }
    }
}

impl Pages for TopPages {
    fn title(&self) -> String {
        self.title.clone()
    }

    fn tabs(&self) -> &'static [Tab] {
        &TABS
    }

    fn page(&mut self, ask: &Ask<'_>) -> Page {
        match wanted(ask.tab, ask.grouping) {
            Some(Wanted::Talkers(grouping)) => {
                let limit = self.lines_max;
                self.traffic(ask, |talkers, at, (query, selected)| {
                    let selects = |session: &SessionRow| selected.has(query, session);
                    let (lines, more) = talkers.talkers_of(grouping, at, &selects, limit);
                    let seen_ns = talkers.seen_ns(at);
                    let mut sheet = machine_view::talkers_sheet(&lines, grouping, seen_ns);
                    if more > 0 {
                        sheet.notes.push(format!("and {more} more that have less"));
                    }
                    sheet
                })
            }
            Some(Wanted::Dns(grouping)) => self.traffic(ask, |talkers, at, (query, _)| {
                machine_view::dns_sheet(&talkers.asked(grouping, at, query), grouping)
            }),
            Some(Wanted::Disk(grouping)) => {
                seen(self.watchers.disks.seen(), |watch| machine_view::disks_sheet(watch, grouping))
            }
            Some(Wanted::Cpu(place, by)) => match self.watchers.processors.seen() {
                Some(worked) => processors(&worked, place, by),
                None => looking(),
            },
            Some(Wanted::Sockets(grouping)) => {
                let query = query_of(ask);
                seen(self.watchers.sockets.seen(), |watch| sockets(watch, grouping, &query))
            }
            Some(Wanted::Host(grouping)) => seen(self.watchers.vitals.seen(), |vitals| {
                machine_view::vitals_sheet(vitals, grouping)
            }),
            Some(Wanted::Recorder(grouping)) => {
                seen(self.watchers.recorders.seen(), |[now, before]| {
                    machine_view::recorders_sheet(now, before, grouping)
                })
            }
            None => Page::default(),
        }
    }

    fn check(&self, query: &str) -> Result<(), String> {
        let query =
            Query::parse(query, SystemClock.realtime()).map_err(|error| error.to_string())?;
        match query.needs_atlas() {
            Some(field) => Err(format!("{} has no values here", field.name)),
            None => Ok(()),
        }
    }

    fn second(&self, text: &str) -> Result<i64, String> {
        let text = text.trim();
        let day = || {
            let newest = self.feed.as_ref().ok().and_then(|feed| feed.talkers().held().newest());
            let now = newest.map_or(SystemClock.realtime(), Moment::end);
            now.to_string().split('T').next().unwrap_or_default().to_owned()
        };
        // A time of day alone is of the day that is shown.
        let is_clock = text.len() <= 8 && text.contains(':');
        let text = if is_clock { format!("{}T{text}", day()) } else { text.to_owned() };
        let query = Query::parse(&format!("after {text}"), SystemClock.realtime());
        let query = query.map_err(|_| "write 10:40, 2026-11-20T10:40 or 5m ago".to_owned())?;
        Ok(query.packet_time_range().0.unix_seconds())
    }

    fn write(&mut self, ask: &Ask<'_>, line: &str) -> Result<String, String> {
        let feed = self.feed.as_ref().map_err(Clone::clone)?;
        let text = if ask.query.is_empty() {
            line.to_owned()
        } else {
            format!("({}) and ({line})", ask.query)
        };
        let at = self.moment(ask.at, feed.talkers().held().newest());
        let at = at.ok_or_else(|| "there are no packets yet".to_owned())?;
        let written = match &self.origin {
            Origin::Volume { options, .. } => saved::from_volume(options, &text, at),
            _ => saved::from_memory(&feed.talkers(), &text),
        };
        written.map_err(|error| crate::failure::line(&error))
    }
}

/// What is asked for; all of it where the words are not a query, which the page says.
fn query_of(ask: &Ask<'_>) -> Query {
    Query::parse(ask.query, SystemClock.realtime()).unwrap_or_else(|_| Query::all())
}

/// The newest moment of a volume without a running recorder.
fn newest_of(origin: &Origin) -> anyhow::Result<Option<Moment>> {
    match origin {
        Origin::Volume { options, is_growing: false } => {
            let inspection = upkeep::inspect(&options.volume, &options.members)?;
            Ok(inspection.times.map(|(_, newest)| Moment::of(newest)))
        }
        _ => Ok(None),
    }
}

fn seen<T>(watch: Option<Arc<T>>, sheet: impl FnOnce(&T) -> Sheet) -> Page {
    match watch {
        Some(watch) => Page { sheet: sheet(&watch), ..Page::default() },
        None => looking(),
    }
}

fn looking() -> Page {
    Page { head: vec!["looking".to_owned()], ..Page::default() }
}

/// What processors worked at, by the place of a grouping.
fn processors(worked: &Result<Worked, String>, place: usize, by: By) -> Page {
    match worked {
        Ok(worked) => {
            let rows = worked.rows.get(place).map_or(&[][..], Vec::as_slice);
            let sheet = machine_view::profile_sheet(rows, by, &worked.missing, &worked.unseen);
            Page { head: machine_view::profile_head(&worked.summary), sheet, ..Page::default() }
        }
        Err(why) => Page { sheet: noted(why), ..Page::default() },
    }
}

fn noted(why: &str) -> Sheet {
    Sheet { notes: vec![why.to_owned()], ..Sheet::default() }
}

fn sockets(watch: &Result<Watch, String>, grouping: SocketGrouping, query: &Query) -> Sheet {
    match watch {
        Ok(watch) => machine_view::sockets_sheet(watch, grouping, &|track| matches(track, query)),
        Err(why) => noted(why),
    }
}

/// Whether a query selects the session that a socket is an end of, by what is known of it here.
fn matches(track: &Track, query: &Query) -> bool {
    let (local, remote) = (track.last.local, track.last.remote);
    let tuple = FiveTuple {
        orig: local.ip().to_canonical().into(),
        resp: remote.ip().to_canonical().into(),
        orig_port: local.port(),
        resp_port: remote.port(),
        proto: Protocol::TCP,
    };
    let mut row = SessionRow::new(tuple, SystemClock.realtime());
    (row.orig.packets, row.resp.packets) = (1, 1);
    query.matches(&row, &[])
}
