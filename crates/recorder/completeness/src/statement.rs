//! What is missing from an answer, and how such statements are put together.
//!
//! The algebra is drawn in docs/extract.md, Complete, incomplete, unknown. A statement is a sum of
//! losses and doubts, and [`Completeness::add`] joins two: the join is commutative, associative and
//! idempotent, and never has fewer losses than either, so the state of a whole is the worst of its
//! parts, in whatever order they come.

use core::fmt;

use format::directory::{Gap, GapCause};
use format::head::StripeId;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use units::number::to_u64;
use units::{InterfaceId, Times, Timestamp, plural};
use volume::GivenUp;

use crate::form;
use crate::standing::{Doubt, Standing, Stretch, StretchEnd};

/// Stretches of time of a kind that a text lists.
const LISTED: usize = 8;

/// Nanoseconds of a second.
const NANOS: u64 = units::NANOS_PER_SECOND.cast_unsigned();

/// Why bytes of a stripe could not be used.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DamageKind {
    /// The stripe has no readable head.
    Missing,
    /// Rows of its body that do not match their checksums, ascending; packets in front of the first
    /// were used.
    Rows(Vec<u16>),
    /// It is encrypted, and none of the identities opens its key.
    Locked,
    /// The rows are as written and hold no packets, from this byte of the body on.
    Malformed(usize),
}

/// What is known of the place of damage.
impl Serialize for DamageKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut place = serializer.serialize_map(None)?;
        match self {
            Self::Missing | Self::Locked => {}
            Self::Rows(rows) => place.serialize_entry("rows", rows)?,
            Self::Malformed(offset) => place.serialize_entry("malformed_from", offset)?,
        }
        place.end()
    }
}

/// A stripe that was wanted and is damaged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Damage {
    /// The damaged stripe.
    pub stripe: StripeId,
    /// Kind of the damage.
    #[serde(flatten)]
    pub kind: DamageKind,
}

/// What can be said of an answer. Later is worse, and the worst of the parts is that of the whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Everything that was asked for is there.
    #[default]
    Complete,
    /// Nothing is known to be missing, and for some times or packets that is not known.
    Unknown,
    /// Something that was asked for is missing.
    Incomplete,
}

impl State {
    /// As texts and manifests say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Unknown => "unknown",
            Self::Incomplete => "incomplete",
        }
    }

    /// The state of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Complete, Self::Unknown, Self::Incomplete].into_iter().find(|it| it.name() == name)
    }
}

/// Packets that stand behind later ones in an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Disorder {
    /// Number of packets.
    pub packets: u64,
    /// By how much at most, in nanoseconds.
    pub most_ns: u64,
}

impl Disorder {
    fn is_none(&self) -> bool {
        self.packets == 0
    }

    /// A packet of `timestamp` comes behind one of `latest`.
    pub fn note(&mut self, latest: Timestamp, timestamp: Timestamp) {
        if timestamp < latest {
            self.packets = self.packets.saturating_add(1);
            self.most_ns = self.most_ns.max(latest.0.abs_diff(timestamp.0));
        }
    }
}

/// What is missing from an answer. An unknown number of packets is not zero. Fields are keys in
/// JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Completeness {
    /// Losses while recording, in the time range of the query, by their times.
    #[serde(serialize_with = "form::gaps")]
    pub gaps: Vec<Gap>,
    /// Damaged stripes that were needed, ascending.
    pub damage: Vec<Damage>,
    /// Pieces of selected sessions that the ring has overwritten.
    pub retired_pieces: u64,
    /// Packets that the index counts for the selected sessions and that were not found, for no
    /// reason above.
    pub missing_packets: u64,
    /// Packets that no index has; they were indexed on the way and are in the answer.
    pub unindexed_packets: u64,
    /// Packets that have no rows and shall have none, because they ended the indexer twice:
    /// it is not known whether they belong to the answer.
    pub left_out_packets: u64,
    /// Where names were asked for: packets that the recorder had no time to look at for some.
    pub unread_packets: u64,
    /// Sessions that began among packets without rows, and go on in the index as others: what was
    /// asked of them whole was asked of two parts.
    #[serde(skip_serializing_if = "form::is_zero")]
    pub split_sessions: u64,
    /// Packets of a link type for which the packet filter means nothing, or that the file cannot
    /// hold beside its own: they were left out.
    pub unfit_packets: u64,
    /// Secrets and names beside packets that were met, and that belong to no packet of the answer,
    /// as far as can be told. No loss: of what was asked for nothing is missing.
    #[serde(skip_serializing_if = "form::is_zero")]
    pub secrets_left_out: u64,
    /// Sessions that were named by their ids and are not there.
    pub unknown_sessions: u64,
    /// Members that failed too often or for too long, and were not read any more. No loss: the
    /// others stood in for them, or what is missing is damage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUp>,
    /// Packets that are not in the order of time. No loss.
    #[serde(rename = "out_of_order", skip_serializing_if = "Disorder::is_none")]
    pub disorder: Disorder,
    /// Something that was asked for lies at or before this time, and is not given out any more.
    #[serde(rename = "expired_through_ns", skip_serializing_if = "Option::is_none")]
    pub expired_through: Option<Timestamp>,
    /// Packets up to this time were erased for their age, and were asked for; what they were is not
    /// known any more, nor that the clock was right which expired them.
    #[serde(rename = "erased_through_ns", skip_serializing_if = "Option::is_none")]
    pub erased_through: Option<Timestamp>,
    /// Of what has expired so much was met and withheld: hull of its times.
    #[serde(serialize_with = "form::hull", skip_serializing_if = "Option::is_none")]
    pub withheld: Option<(Timestamp, Timestamp)>,
    /// What is beyond the limit was left out: there is something.
    pub limited: bool,
    /// As many were found as the limit allows; whether there are more was not looked at.
    pub unsought: bool,
    /// The run was ended before its end.
    pub stopped: bool,
    /// When the interfaces were recorded. No loss: it says what an answer is complete of.
    pub recorded: Vec<Stretch>,
    /// Times that were asked for, and in which no recorder ran.
    #[serde(rename = "not_recorded", serialize_with = "form::times")]
    pub unrecorded: Times,
    /// Times that were asked for, and that are overwritten or erased.
    #[serde(rename = "not_held", serialize_with = "form::times")]
    pub overwritten: Times,
    /// Times of packets that were forgotten on request; of which they were is not known any more.
    #[serde(serialize_with = "form::times", skip_serializing_if = "Times::is_empty")]
    pub forgotten: Times,
    /// Times of which it is not known whether packets are missing.
    #[serde(rename = "not_known", serialize_with = "form::times_with")]
    pub doubts: Vec<(Doubt, Times)>,
}

impl Completeness {
    /// The same to who asked for a limit: reaching it is no verdict, they got what they asked for.
    #[must_use]
    pub fn within_limit(&self) -> Self {
        Self { limited: false, unsought: false, ..self.clone() }
    }

    /// What can be said of the answer.
    pub fn state(&self) -> State {
        let lost_by = |gap: &Gap| gap.cause != GapCause::Crash;
        let is_missing = self.gaps.iter().any(lost_by)
            || !self.damage.is_empty()
            || self.retired_pieces > 0
            || self.missing_packets > 0
            || self.unfit_packets > 0
            || self.unknown_sessions > 0
            || self.expired_through.is_some()
            || self.erased_through.is_some()
            || self.limited
            || self.stopped
            || !self.unrecorded.is_empty()
            || !self.overwritten.is_empty()
            || !self.forgotten.is_empty();
        let is_doubtful = !self.gaps.is_empty()
            || self.left_out_packets > 0
            || self.unread_packets > 0
            || self.split_sessions > 0
            || self.unsought
            || self.doubts.iter().any(|(_, times)| !times.is_empty());
        match (is_missing, is_doubtful) {
            (true, _) => State::Incomplete,
            (false, true) => State::Unknown,
            (false, false) => State::Complete,
        }
    }

    /// These gaps, and as gaps what recorders that ended without a stop may have lost and no later
    /// recorder has stored.
    pub fn with_crashes(&self, mut gaps: Vec<Gap>) -> Vec<Gap> {
        let is_crash = |gap: &&Gap| gap.cause == GapCause::Crash;
        let stored: Times = gaps.iter().filter(is_crash).map(|gap| (gap.from, gap.to)).collect();
        let crashes = self.doubts.iter().filter(|(doubt, _)| *doubt == Doubt::Crash);
        let left = crashes.flat_map(|(_, times)| times.iter());
        let left = left.filter(|(from, to)| stored.and(&Times::of(*from, *to)).is_empty());
        gaps.extend(left.map(|(from, to)| Gap {
            cause: GapCause::Crash,
            interface: None,
            packets: None,
            bytes: None,
            from,
            to,
        }));
        gaps
    }

    /// Everything that was on the wire and matches is in the answer, as far as can be known.
    pub fn is_complete(&self) -> bool {
        self.state() == State::Complete
    }

    /// Joins what another part of the answer lacks. Parts may have met the same losses: what is
    /// only counted counts once, as the larger of the two.
    pub fn add(&mut self, other: &Self) {
        self.add_gaps(&other.gaps, Timestamp::MIN, Timestamp::MAX);
        for Damage { stripe, kind } in &other.damage {
            self.add_damage(*stripe, kind.clone());
        }
        self.retired_pieces = self.retired_pieces.max(other.retired_pieces);
        self.missing_packets = self.missing_packets.max(other.missing_packets);
        self.unindexed_packets = self.unindexed_packets.max(other.unindexed_packets);
        self.left_out_packets = self.left_out_packets.max(other.left_out_packets);
        self.unread_packets = self.unread_packets.max(other.unread_packets);
        self.split_sessions = self.split_sessions.max(other.split_sessions);
        self.unfit_packets = self.unfit_packets.max(other.unfit_packets);
        self.secrets_left_out = self.secrets_left_out.max(other.secrets_left_out);
        self.unknown_sessions = self.unknown_sessions.max(other.unknown_sessions);
        let Disorder { packets, most_ns } = other.disorder;
        self.disorder.packets = self.disorder.packets.max(packets);
        self.disorder.most_ns = self.disorder.most_ns.max(most_ns);
        self.expired_through = self.expired_through.max(other.expired_through);
        self.forgotten.add(&other.forgotten);
        self.withhold_times(other.withheld);
        self.erased_through = self.erased_through.max(other.erased_through);
        self.add_given_up(other.given_up.iter().copied());
        self.limited |= other.limited;
        self.unsought |= other.unsought;
        self.stopped |= other.stopped;
        let Self { recorded, unrecorded, overwritten, doubts, .. } = other;
        self.add_standing(&Standing {
            stretches: recorded.clone(),
            unrecorded: unrecorded.clone(),
            overwritten: overwritten.clone(),
            doubts: doubts.clone(),
        });
    }

    /// Adds what a look besides the one that answers lacked. What is missing from it is missing
    /// from the answer, too, but what is counted or bounded by times is counted by the one that
    /// answers.
    pub fn add_aside(&mut self, lacked: Self) {
        for damage in lacked.damage {
            self.add_damage(damage.stripe, damage.kind);
        }
        if let Some(through) = lacked.expired_through {
            let times = lacked.withheld.unwrap_or((Timestamp::MAX, Timestamp::MIN));
            self.withhold(through, times);
        }
        self.unread_packets = self.unread_packets.max(lacked.unread_packets);
        self.split_sessions = self.split_sessions.max(lacked.split_sessions);
    }

    /// Adds what a search lacked that has found the sessions of the answer, in the times that were
    /// asked for. Their packets are read behind it, and nothing else: what was lost elsewhere may
    /// have been of others.
    pub fn add_search(&mut self, lacked: Self, (from, to): (Timestamp, Timestamp)) {
        self.add_gaps(&lacked.gaps, from, to);
        self.forgotten.add(&lacked.forgotten.and(&Times::of(from, to)));
        self.left_out_packets = self.left_out_packets.max(lacked.left_out_packets);
        self.unindexed_packets = self.unindexed_packets.max(lacked.unindexed_packets);
        // What was not there to be searched may have been what was asked for.
        self.retired_pieces = self.retired_pieces.max(lacked.retired_pieces);
        self.missing_packets = self.missing_packets.max(lacked.missing_packets);
        self.unfit_packets = self.unfit_packets.max(lacked.unfit_packets);
        self.add_aside(lacked);
    }

    /// Of what was forgotten only that counts which lies in times that were asked for.
    pub fn forget_but(&mut self, asked: &Times) {
        self.forgotten = self.forgotten.and(asked);
    }

    /// Adds what heads say of the times that were asked for.
    pub fn add_standing(&mut self, standing: &Standing) {
        for stretch in &standing.stretches {
            if let Err(place) = self.recorded.binary_search(stretch) {
                self.recorded.insert(place, stretch.clone());
            }
        }
        self.unrecorded.add(&standing.unrecorded);
        self.overwritten.add(&standing.overwritten);
        for (doubt, times) in standing.doubts.iter().filter(|(_, times)| !times.is_empty()) {
            match self.doubts.binary_search_by_key(doubt, |(known, _)| *known) {
                Ok(place) => self.doubts.get_mut(place).expect("just found").1.add(times),
                Err(place) => self.doubts.insert(place, (*doubt, times.clone())),
            }
        }
    }

    /// Packets of selected sessions are not there; saturates, for a forged index may count any.
    pub fn miss(&mut self, packets: u64) {
        self.missing_packets = self.missing_packets.saturating_add(packets);
    }

    /// Adds the gaps that lie within some times. A loss is stored in its piece and in the index of
    /// its segment, which are read in turn, and counts once.
    pub fn add_gaps(&mut self, gaps: &[Gap], from: Timestamp, to: Timestamp) {
        for gap in gaps.iter().filter(|gap| gap.from <= to && gap.to >= from) {
            // Mostly in the order of time: at the end.
            if let Err(place) = self.gaps.binary_search_by_key(&gap_key(gap), gap_key) {
                self.gaps.insert(place, gap.clone());
            }
        }
    }

    /// Something of these times is older than the volume's maximum age.
    pub fn withhold(&mut self, through: Timestamp, (from, to): (Timestamp, Timestamp)) {
        self.expired_through = self.expired_through.max(Some(through));
        self.withhold_times(Some((from, to.min(through))).filter(|(from, to)| from <= to));
    }

    fn withhold_times(&mut self, times: Option<(Timestamp, Timestamp)>) {
        let Some((from, to)) = times else { return };
        let (known_from, known_to) = self.withheld.unwrap_or((from, to));
        self.withheld = Some((known_from.min(from), known_to.max(to)));
    }

    /// Adds members that were given up; of one that is known already what more has failed.
    pub fn add_given_up(&mut self, members: impl IntoIterator<Item = GivenUp>) {
        for found in members {
            match self.given_up.binary_search_by_key(&found.member, |known| known.member) {
                Ok(place) => {
                    let known = self.given_up.get_mut(place).expect("just found");
                    known.failed = known.failed.max(found.failed);
                    known.seconds = known.seconds.max(found.seconds);
                }
                Err(place) => self.given_up.insert(place, found),
            }
        }
    }

    /// Adds damage that was met.
    pub fn add_damage(&mut self, stripe: StripeId, kind: DamageKind) {
        let damage = Damage { stripe, kind };
        // Mostly in the order of the ring: at the end.
        if let Err(place) = self.damage.binary_search(&damage) {
            self.damage.insert(place, damage);
        }
    }
}

/// Everything that a gap says, its times first.
type GapKey = (Timestamp, Timestamp, GapCause, Option<InterfaceId>, Option<u64>, Option<u64>);

fn gap_key(gap: &Gap) -> GapKey {
    (gap.from, gap.to, gap.cause, gap.interface, gap.packets, gap.bytes)
}

/// A few lines, the verdict first.
impl fmt::Display for Completeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.state().name())?;
        self.fmt_times(f)?;
        for gap in &self.gaps {
            let cause = gap.cause.name().replace('_', " ");
            write!(f, "\ngap: {cause} between {} and {}", gap.from, gap.to)?;
            match gap.packets {
                Some(packets) => write!(f, ", {} lost", plural(packets, "packet"))?,
                None => f.write_str(", an unknown number of packets lost")?,
            }
        }
        for Damage { stripe, kind } in &self.damage {
            match kind {
                DamageKind::Missing => write!(f, "\ndamage: stripe {stripe} cannot be read")?,
                DamageKind::Locked => {
                    write!(f, "\nlocked: no identity opens the key of stripe {stripe}")?;
                }
                DamageKind::Rows(rows) => {
                    let rows = plural(to_u64(rows.len()), "row");
                    write!(f, "\ndamage: {rows} of stripe {stripe}")?;
                }
                DamageKind::Malformed(offset) => {
                    write!(f, "\ndamage: stripe {stripe} holds no packets from byte {offset} on")?;
                }
            }
        }
        self.fmt_counts(f)?;
        self.fmt_recorded(f)
    }
}

impl Completeness {
    /// What it is complete of: the newest stretches.
    fn fmt_recorded(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.recorded.len().saturating_sub(LISTED);
        if hidden > 0 {
            write!(f, "\nrecorded: {hidden} more before these")?;
        }
        for stretch in self.recorded.iter().skip(hidden) {
            write!(f, "\nrecorded: {stretch}")?;
        }
        Ok(())
    }

    fn fmt_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_listed(f, "not recorded: no recorder ran", &self.unrecorded)?;
        fmt_listed(f, "not held: packets were overwritten or erased", &self.overwritten)?;
        fmt_listed(f, "forgotten: packets were erased on request", &self.forgotten)?;
        for (doubt, times) in &self.doubts {
            let text = match doubt {
                Doubt::Crash => {
                    "not known: a recorder ended without a stop, packets may be missing"
                }
                Doubt::Going => "not known: the recorder has not yet reported packets",
                Doubt::Unsaid => "not known: the volume does not say whether a recorder ran",
            };
            fmt_listed(f, text, times)?;
        }
        Ok(())
    }

    fn fmt_indexing(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unread_packets > 0 {
            let packets = plural(self.unread_packets, "packet");
            write!(f, "\nnames may be missing: {packets} not looked at")?;
        }
        if self.split_sessions > 0 {
            let sessions = plural(self.split_sessions, "session");
            write!(
                f,
                "\nnot known as one: {sessions} that began among packets without an index are \
                 two, before and behind"
            )?;
        }
        if self.unindexed_packets > 0 {
            let packets = plural(self.unindexed_packets, "packet");
            write!(f, "\nindexed on the way: {packets}")?;
        }
        Ok(())
    }

    fn fmt_counts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.retired_pieces > 0 {
            let pieces = plural(self.retired_pieces, "piece");
            write!(f, "\noverwritten: {pieces} of these sessions")?;
        }
        if let Some(through) = self.expired_through {
            write!(f, "\nexpired: packets up to {through} are beyond the maximum age")?;
        }
        if let Some((from, to)) = self.withheld {
            write!(f, "\nwithheld by age: packets from {from} to {to}")?;
        }
        if let Some(through) = self.erased_through {
            write!(f, "\nerased by age: packets up to {through}")?;
        }
        let counts = [
            (self.missing_packets, "not found", "packets that the index counts"),
            (self.left_out_packets, "not looked at", "packets that ended the indexer twice"),
            (
                self.unfit_packets,
                "left out",
                "packets of link types that the filter or a pcap file does not take",
            ),
        ];
        for (count, what, of) in counts.into_iter().filter(|(count, ..)| *count > 0) {
            write!(f, "\n{what}: {count} {of}")?;
        }
        self.fmt_indexing(f)?;
        if self.secrets_left_out > 0 {
            let count = self.secrets_left_out;
            write!(f, "\nnot given: {count} secrets and names of no packet in the answer")?;
        }
        if self.unknown_sessions > 0 {
            write!(f, "\nnot there: {} of the named sessions", self.unknown_sessions)?;
        }
        let Disorder { packets, most_ns } = self.disorder;
        if packets > 0 {
            let (seconds, nanos) = (most_ns / NANOS, most_ns % NANOS);
            write!(
                f,
                "\nout of order: {} behind later ones, by at most \
                 {seconds}.{nanos:09} s: the clock was set back, or more overlaps in time than \
                 memory holds",
                plural(packets, "packet")
            )?;
        }
        for member in &self.given_up {
            write!(f, "\nnot read any more: {member}")?;
        }
        if self.limited {
            f.write_str("\ncut: there is more than the limit allows")?;
        }
        if self.unsought {
            f.write_str("\ncut: the limit was reached; whether there is more was not looked at")?;
        }
        if self.stopped {
            f.write_str("\ncut: stopped before its end")?;
        }
        Ok(())
    }
}

/// The newest stretches, and how many there are before.
fn fmt_listed(f: &mut fmt::Formatter<'_>, text: &str, times: &Times) -> fmt::Result {
    let hidden = times.count().saturating_sub(LISTED);
    for (from, to) in times.iter().skip(hidden) {
        match (from > Timestamp::MIN, to < Timestamp::MAX) {
            (true, true) => write!(f, "\n{text} between {from} and {to}")?,
            (true, false) => write!(f, "\n{text} after {from}")?,
            (false, true) => write!(f, "\n{text} before {to}")?,
            (false, false) => write!(f, "\n{text} of any time")?,
        }
    }
    if hidden > 0 {
        write!(f, "\n{text} in {hidden} more times before")?;
    }
    Ok(())
}

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, through, .. } = self;
        if !self.is_live {
            return write!(f, "files with packets from {from} to {through}");
        }
        write!(f, "{from} to {through}")?;
        for (place, name) in self.interfaces.iter().enumerate() {
            let between = if place == 0 { " on " } else { ", " };
            write!(f, "{between}{}", name.escape_debug())?;
        }
        let others = usize::from(self.interface_count).saturating_sub(self.interfaces.len());
        if others > 0 {
            write!(f, " and {others} further interfaces")?;
        }
        match self.end {
            StretchEnd::Going => f.write_str(", and goes on"),
            StretchEnd::Crash => f.write_str(", at least"),
            StretchEnd::InOrder | StretchEnd::ClockSet => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
