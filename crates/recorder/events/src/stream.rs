//! What happens while a recording goes on, said when it happens.
//!
//! Each thread that learns of something puts it into one stream ([`Events`]). The thread that
//! reports of the recording takes it out a few times a second and hands it to a [`Speaker`], which
//! decides what is said now: each kind at most once a minute for each interface, member or input.
//! Further ones are counted; the newest of them is said, with their number, when the minute is
//! over.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use units::{NANOS_PER_SECOND, Timestamp};

/// Events between two looks; of more, only their number is known.
const WAITING_MAX: usize = 1024;
/// Events that are kept for who asks how the recording stands.
const RECENT: usize = 32;
/// Kinds and subjects that are counted apart; of further subjects all count as one.
const SUBJECTS_MAX: usize = 256;
/// One line of a kind in this time.
const EVERY_NS: i64 = 60 * NANOS_PER_SECOND;

/// What sort of thing happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// What was decided when the recording began. Said always, and each but once.
    Setup,
    /// An interface went down.
    InterfaceDown,
    /// It is up again.
    InterfaceUp,
    /// An interface was removed.
    InterfaceGone,
    /// An input broke off.
    #[serde(rename = "input_broken_off")]
    InputBroken,
    /// What a source has found: the adapter gives no times, the interface refuses frames, ...
    Source,
    /// Packets are being lost.
    DropsBegin,
    /// No packet was lost for a while.
    DropsEnd,
    /// The wall clock was set.
    ClockStep,
    /// Packets do not expire by the clock.
    ClockDoubt,
    /// Packets are stored that are too old to be given out.
    Withheld,
    /// A member is absent, failed, came back, was replaced or got what it lacked.
    Member,
    /// The indexer ended before its time, or none can be started.
    IndexerEnded,
    /// Rows that are to outlive their packets cannot be stored, or can be again.
    RowsUnkept,
    /// Packets of an earlier recording cannot be read.
    Damage,
    /// One thread waits for too long for another one, or does so no more.
    LongWait,
    /// A write took too long.
    SlowWrite,
    /// A member gives less than it was qualified for, or enough again.
    #[serde(rename = "slower_than_qualified")]
    Promise,
    /// Traffic is near what the disks guarantee, above, or well below it again.
    Headroom,
    /// So much happened at once that it did not fit.
    TooMany,
}

impl EventKind {
    /// The report of the recording repeats it: nothing else there says it.
    pub fn is_for_report(self) -> bool {
        matches!(
            self,
            Self::InterfaceDown
                | Self::InterfaceUp
                | Self::ClockStep
                | Self::RowsUnkept
                | Self::LongWait
                | Self::Promise
                | Self::Headroom
                | Self::TooMany
        )
    }
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When it was heard of.
    pub at: Timestamp,
    /// What sort of thing.
    pub kind: EventKind,
    /// The same in words.
    pub text: String,
}

/// In its parts, and in a line.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { at, kind, text } = self;
        let mut map = to.serialize_map(Some(4))?;
        map.serialize_entry("at_ns", at)?;
        map.serialize_entry("kind", kind)?;
        map.serialize_entry("text", text)?;
        map.serialize_entry("line", &format_args!("{at} {text}"))?;
        map.end()
    }
}

/// Where events arise: what happened, and to what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct News {
    /// What sort of thing.
    pub kind: EventKind,
    /// Interface, member, input; nothing where there is but one.
    pub subject: String,
    /// The same in words.
    pub text: String,
}

/// The stream of events; clones put into the same one.
#[derive(Clone, Debug, Default)]
pub struct Events {
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    news: Vec<News>,
    left_out: u64,
}

impl Events {
    /// Something happened to `subject`.
    pub fn say(&self, kind: EventKind, subject: &str, text: String) {
        let mut waiting = self.lock();
        if waiting.news.len() < WAITING_MAX {
            waiting.news.push(News { kind, subject: subject.to_owned(), text });
        } else {
            waiting.left_out = waiting.left_out.saturating_add(1);
        }
    }

    /// Takes out what is there, in the order in which it came.
    pub fn take(&self) -> Vec<News> {
        let Waiting { mut news, left_out } = core::mem::take(&mut *self.lock());
        if left_out > 0 {
            let text = format!("{left_out} further events came at once and are not shown");
            news.push(News { kind: EventKind::TooMany, subject: String::new(), text });
        }
        news
    }

    /// No state in between could be left by a panic.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        stage::lock(&self.waiting)
    }
}

/// Of one kind and subject.
#[derive(Debug)]
struct Line {
    said_ns: i64,
    /// The newest that was not said, and how many were not.
    held: Option<Event>,
    unsaid: u64,
}

/// Says events when they happen, and none too often.
#[derive(Debug, Default)]
pub struct Speaker {
    lines: BTreeMap<(EventKind, String), Line>,
    recent: VecDeque<Event>,
}

impl Speaker {
    /// What is to be said now: of what has just happened, and of what was held back.
    pub fn hear(&mut self, news: Vec<News>, (now_ns, at): (i64, Timestamp)) -> Vec<Event> {
        let mut said = self.held(now_ns);
        for News { kind, subject, text } in news {
            said.extend(self.one(Event { at, kind, text }, subject, now_ns));
        }
        for event in said.iter().filter(|event| event.kind != EventKind::Setup) {
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(event.clone());
        }
        said
    }

    /// What was held back, said in the end.
    pub fn rest(&mut self) -> Vec<Event> {
        self.held(i64::MAX)
    }

    /// The newest that were said, the oldest first.
    pub fn recent(&self) -> Vec<Event> {
        self.recent.iter().cloned().collect()
    }

    fn one(&mut self, event: Event, subject: String, now_ns: i64) -> Option<Event> {
        if event.kind == EventKind::Setup {
            return Some(event);
        }
        let mut key = (event.kind, subject);
        if self.lines.len() >= SUBJECTS_MAX && !self.lines.contains_key(&key) {
            key.1 = String::new();
        }
        let Some(line) = self.lines.get_mut(&key) else {
            self.lines.insert(key, Line { said_ns: now_ns, held: None, unsaid: 0 });
            return Some(event);
        };
        if now_ns.saturating_sub(line.said_ns) >= EVERY_NS {
            line.said_ns = now_ns;
            return Some(event);
        }
        line.held = Some(event);
        line.unsaid = line.unsaid.saturating_add(1);
        None
    }

    /// Takes out what was held back of the lines that are due, in the order of time.
    fn held(&mut self, now_ns: i64) -> Vec<Event> {
        let is_due = |line: &&mut Line| now_ns.saturating_sub(line.said_ns) >= EVERY_NS;
        let due = self.lines.values_mut().filter(is_due);
        let mut events: Vec<_> = due
            .filter_map(|line| {
                let mut event = line.held.take()?;
                line.said_ns = now_ns;
                let more = core::mem::take(&mut line.unsaid).saturating_sub(1);
                if more > 0 {
                    event.text = format!("{} ({more} more since the last line)", event.text);
                }
                Some(event)
            })
            .collect();
        events.sort_by_key(|event| event.at);
        events
    }
}

#[cfg(test)]
mod tests {
    use units::{Clock, ManualClock};

    use super::*;

    fn down(subject: &str, text: &str) -> News {
        let (subject, text) = (subject.to_owned(), text.to_owned());
        News { kind: EventKind::InterfaceDown, subject, text }
    }

    fn texts(events: &[Event]) -> Vec<&str> {
        events.iter().map(|event| &*event.text).collect()
    }

    #[test]
    fn a_kind_is_said_at_once_then_once_a_minute_with_the_number_of_the_others() {
        let clock = ManualClock::new(Timestamp(1));
        let begun_ns = clock.boottime_ns();
        let at = |seconds: i64| (begun_ns + seconds * NANOS_PER_SECOND, Timestamp(seconds));
        let mut speaker = Speaker::default();
        assert_eq!(texts(&speaker.hear(vec![down("a", "first")], at(0))), ["first"]);
        // Another interface and another kind have a minute of their own.
        assert_eq!(texts(&speaker.hear(vec![down("b", "other")], at(1))), ["other"]);
        let up = News { kind: EventKind::InterfaceUp, ..down("a", "up") };
        assert_eq!(texts(&speaker.hear(vec![up], at(2))), ["up"]);
        for second in 3..60 {
            assert!(speaker.hear(vec![down("a", "again")], at(second)).is_empty(), "{second}");
        }
        // The newest one is said when the minute is over, though nothing happens then.
        let said = speaker.hear(Vec::new(), at(60));
        assert_eq!(texts(&said), ["again (56 more since the last line)"]);
        assert_eq!(said[0].at, Timestamp(59), "with the time when it happened");
        // That line begins a minute, too.
        assert!(speaker.hear(vec![down("a", "third")], at(119)).is_empty());
        assert_eq!(texts(&speaker.hear(Vec::new(), at(120))), ["third"]);
        // After a quiet minute the next one is said at once.
        assert_eq!(texts(&speaker.hear(vec![down("a", "late")], at(180))), ["late"]);
    }

    #[test]
    fn what_is_held_back_is_said_in_the_end() {
        let mut speaker = Speaker::default();
        let now = (0, Timestamp(0));
        let news = ["one", "two", "three"].map(|text| down("a", text)).to_vec();
        assert_eq!(texts(&speaker.hear(news, now)), ["one"]);
        assert_eq!(texts(&speaker.rest()), ["three (1 more since the last line)"]);
        assert!(speaker.rest().is_empty());
    }

    #[test]
    fn lines_of_the_beginning_are_all_said_and_not_kept() {
        let mut speaker = Speaker::default();
        let setup = |text| News { kind: EventKind::Setup, ..down("", text) };
        let news = vec![setup("one"), setup("two"), down("a", "down")];
        assert_eq!(texts(&speaker.hear(news, (0, Timestamp(0)))), ["one", "two", "down"]);
        assert_eq!(texts(&speaker.recent()), ["down"]);
    }

    #[test]
    fn everything_has_a_bound_and_nothing_is_forgotten() {
        let events = Events::default();
        for number in 0..WAITING_MAX + 7 {
            events.say(EventKind::SlowWrite, &number.to_string(), "slow".to_owned());
        }
        let news = events.take();
        assert_eq!(news.len(), WAITING_MAX + 1);
        assert!(news[WAITING_MAX].text.starts_with("7 further events"), "{:?}", news.last());
        assert!(events.take().is_empty());
        let mut speaker = Speaker::default();
        let said = speaker.hear(news, (0, Timestamp(0)));
        assert_eq!(said.len(), SUBJECTS_MAX + 2, "one for all further writes, one for the kind");
        assert_eq!(speaker.recent().len(), RECENT);
        let rest = speaker.rest();
        let more = WAITING_MAX - SUBJECTS_MAX - 2;
        assert_eq!(texts(&rest), [format!("slow ({more} more since the last line)")]);
    }
}
