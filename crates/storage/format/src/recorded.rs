//! What a recording had covered when a stripe was submitted: since when, and up to when, every
//! packet is in that stripe or one before it, or is counted as lost there.
//!
//! Layout: docs/format.md, Recorded. It lies in the head behind the MAC, outside of the common
//! part, so it has no say in a stripe's identity; checksum and MAC cover it.

use units::{ClockState, Sequence, Timestamp, start_of};

use crate::field::{get_i64, get_u16, get_u32, get_u64, put};
use crate::head::{HEAD_BYTES, SEQUENCE_MAX, StripeId};

/// Bytes of the names of interfaces, with their lengths, that a head has space for.
const NAME_BYTES_MAX: usize = 312;
/// Longest name; what is behind is cut.
const NAME_LEN_MAX: usize = 64;

const KIND_LIVE: u8 = 1;
const KIND_FILES: u8 = 2;
const FLAG_GOES_ON: u8 = 1;
const FLAG_EARLIER_SAID: u8 = 2;

/// A recorder that lives says so within this time: it writes a head after a minute of silence, and
/// one whose disks hang goes on for a while.
pub const ALIVE_NS: i64 = 120 * units::NANOS_PER_SECOND;

/// Something is said of the clock.
const CLOCK_SAID: u8 = 1;
const CLOCK_OF_KERNEL: u8 = 1;
const CLOCK_OF_ADAPTER: u8 = 2;
const CLOCK_HAS_STATE: u8 = 4;
const CLOCK_SYNCHRONISED: u8 = 8;

/// Byte offsets; drawn with their meaning in docs/format.md, Recorded.
mod at {
    pub(super) const START: usize = 3704;
    pub(super) const KIND: usize = 3714;
    pub(super) const FLAGS: usize = 3715;
    pub(super) const INTERFACES: usize = 3716;
    pub(super) const NAMES_BYTES: usize = 3718;
    pub(super) const FROM: usize = 3720;
    pub(super) const THROUGH: usize = 3728;
    pub(super) const NAMES: usize = 3736;
    pub(super) const CLOCK: usize = 4048;
    pub(super) const CLOCK_FLAGS: usize = 4049;
    pub(super) const CLOCK_STEPS: usize = 4050;
    pub(super) const CLOCK_ESTIMATED_ERROR: usize = 4052;
    pub(super) const CLOCK_LARGEST_ERROR: usize = 4056;
    pub(super) const EARLIER: usize = 4064;
    pub(super) const EARLIER_LOST: usize = 4072;
}

const NAMES_END: usize = at::NAMES + NAME_BYTES_MAX;
const _: () = assert!(NAMES_END == at::CLOCK);
const _: () = assert!(at::CLOCK_LARGEST_ERROR + 4 == HEAD_BYTES - 36);

/// What the recorder knew of the clock that packets have their times from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordedClock {
    /// Packets of some interfaces have the kernel's time.
    pub of_kernel: bool,
    /// Packets of some interfaces have the time of their adapter, whose clock is another one, of
    /// which nothing is known here. A packet that the adapter did not stamp has the kernel's.
    pub of_adapter: bool,
    /// How often the recorder has seen the kernel's clock being set since it began; 65 535 or more
    /// is 65 535.
    pub steps: u16,
    /// What the kernel said of its clock when the stripe was submitted; `None` where it said
    /// nothing. Errors of 2^32 us and more are that.
    pub state: Option<ClockState>,
}

impl RecordedClock {
    fn encode(&self, page: &mut [u8; HEAD_BYTES]) {
        let Self { of_kernel, of_adapter, steps, state } = *self;
        let is_synchronised = state.is_some_and(|state| state.is_synchronised);
        let flags = [
            (of_kernel, CLOCK_OF_KERNEL),
            (of_adapter, CLOCK_OF_ADAPTER),
            (state.is_some(), CLOCK_HAS_STATE),
            (is_synchronised, CLOCK_SYNCHRONISED),
        ];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag);
        put(page, at::CLOCK, &[CLOCK_SAID, flags.sum()]);
        put(page, at::CLOCK_STEPS, &steps.to_le_bytes());
        let state = state.unwrap_or_default();
        let micros = |us: u64| u32::try_from(us).unwrap_or(u32::MAX).to_le_bytes();
        put(page, at::CLOCK_ESTIMATED_ERROR, &micros(state.estimated_error_us));
        put(page, at::CLOCK_LARGEST_ERROR, &micros(state.largest_error_us));
    }

    fn decode(page: &[u8; HEAD_BYTES]) -> Option<Self> {
        let flags = *page.get(at::CLOCK_FLAGS)?;
        let is_set = |flag| flags & flag != 0;
        let state = || ClockState {
            is_synchronised: is_set(CLOCK_SYNCHRONISED),
            estimated_error_us: get_u32(page, at::CLOCK_ESTIMATED_ERROR).into(),
            largest_error_us: get_u32(page, at::CLOCK_LARGEST_ERROR).into(),
        };
        (*page.get(at::CLOCK)? == CLOCK_SAID).then(|| Self {
            of_kernel: is_set(CLOCK_OF_KERNEL),
            of_adapter: is_set(CLOCK_OF_ADAPTER),
            steps: get_u16(page, at::CLOCK_STEPS),
            state: is_set(CLOCK_HAS_STATE).then(state),
        })
    }
}

/// Up to when stretches of recording have something to say, by their clocks: a clock that was set
/// back makes that later than the stretches that follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Earlier {
    /// Nothing was recorded later, and nothing lost later where there was no stop.
    pub latest: Timestamp,
    /// Nothing was lost later where there was no stop; [`Timestamp::MIN`] where all have stopped.
    pub lost: Timestamp,
}

impl Earlier {
    /// There are none.
    pub const NOTHING: Self = Self { latest: Timestamp::MIN, lost: Timestamp::MIN };

    /// Of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { latest: self.latest.max(other.latest), lost: self.lost.max(other.lost) }
    }
}

/// A stretch of time in which a recorder took what its interfaces gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Interfaces were recorded; else files, and the times are those of their packets.
    pub is_live: bool,
    /// The clock was set: the stretch follows the one before without a break.
    pub goes_on: bool,
    /// First stripe of the stretch. The heads in front of it have the stretches before it.
    pub start: StripeId,
    /// Recorded from this time on.
    pub from: Timestamp,
    /// Packets up to this time are in this stripe or one before it, or counted there as lost.
    pub through: Timestamp,
    /// The stretches before this one; `None` where nothing is known of them.
    pub earlier: Option<Earlier>,
    /// How many interfaces were recorded.
    pub interfaces: u16,
    /// Names of the first of them, as many as there is space for.
    pub names: Vec<String>,
    /// What was known of the clock; `None` for files, and where heads do not say it.
    pub clock: Option<RecordedClock>,
}

impl Recorded {
    /// A stretch that begins.
    pub fn new(is_live: bool, start: StripeId, from: Timestamp, interfaces: &[String]) -> Self {
        let mut room = NAME_BYTES_MAX;
        let mut names = Vec::new();
        for name in interfaces {
            let kept = start_of(name, NAME_LEN_MAX);
            let Some(left) = room.checked_sub(1 + kept.len()) else { break };
            room = left;
            names.push(kept.to_owned());
        }
        let interfaces = u16::try_from(interfaces.len()).unwrap_or(u16::MAX);
        let (goes_on, earlier, clock) = Default::default();
        Self { is_live, goes_on, start, from, through: from, earlier, interfaces, names, clock }
    }

    /// Of this stretch, which ended in order or not, and those before it.
    pub fn until(&self, has_stopped: bool) -> Earlier {
        let before = self.earlier.unwrap_or(Earlier::NOTHING);
        let end = if has_stopped { self.through } else { self.through.plus_nanos(ALIVE_NS) };
        let lost = if has_stopped { before.lost } else { end.max(before.lost) };
        Earlier { latest: end.max(before.latest), lost }
    }

    pub(crate) fn encode(&self, page: &mut [u8; HEAD_BYTES]) {
        put(page, at::START, &self.start.sequence.get().to_le_bytes());
        put(page, at::START + 8, &self.start.sub.to_le_bytes());
        put(page, at::KIND, &[if self.is_live { KIND_LIVE } else { KIND_FILES }]);
        let goes_on = if self.goes_on { FLAG_GOES_ON } else { 0 };
        let is_said = if self.earlier.is_some() { FLAG_EARLIER_SAID } else { 0 };
        put(page, at::FLAGS, &[goes_on | is_said]);
        if let Some(Earlier { latest, lost }) = self.earlier {
            put(page, at::EARLIER, &latest.0.to_le_bytes());
            put(page, at::EARLIER_LOST, &lost.0.to_le_bytes());
        }
        put(page, at::INTERFACES, &self.interfaces.to_le_bytes());
        put(page, at::FROM, &self.from.0.to_le_bytes());
        put(page, at::THROUGH, &self.through.0.to_le_bytes());
        let mut end = at::NAMES;
        for name in &self.names {
            let len = u8::try_from(name.len()).expect("names are cut");
            put(page, end, &[len]);
            put(page, end + 1, name.as_bytes());
            end += 1 + name.len();
        }
        let bytes = u16::try_from(end - at::NAMES).expect("as many names as there is space for");
        put(page, at::NAMES_BYTES, &bytes.to_le_bytes());
        if let Some(clock) = &self.clock {
            clock.encode(page);
        }
    }

    /// `None` where nothing is said, or nothing that is known here.
    pub(crate) fn decode(page: &[u8; HEAD_BYTES]) -> Option<Self> {
        let (kind, flags) = (*page.get(at::KIND)?, *page.get(at::FLAGS)?);
        let start = StripeId {
            sequence: Sequence(get_u64(page, at::START)),
            sub: get_u16(page, at::START + 8),
        };
        let is_live = kind == KIND_LIVE;
        if !(is_live || kind == KIND_FILES) || start.sequence > SEQUENCE_MAX {
            return None;
        }
        let bytes = usize::from(get_u16(page, at::NAMES_BYTES)).min(NAME_BYTES_MAX);
        let mut rest = page.get(at::NAMES..at::NAMES + bytes)?;
        let mut names = Vec::new();
        while let Some((&len, behind)) = rest.split_first() {
            let Some((name, behind)) = behind.split_at_checked(usize::from(len)) else { break };
            names.push(String::from_utf8_lossy(name).into_owned());
            rest = behind;
        }
        Some(Self {
            is_live,
            goes_on: flags & FLAG_GOES_ON != 0,
            start,
            from: Timestamp(get_i64(page, at::FROM)),
            through: Timestamp(get_i64(page, at::THROUGH)),
            earlier: (flags & FLAG_EARLIER_SAID != 0).then(|| Earlier {
                latest: Timestamp(get_i64(page, at::EARLIER)),
                lost: Timestamp(get_i64(page, at::EARLIER_LOST)),
            }),
            interfaces: get_u16(page, at::INTERFACES),
            names,
            clock: RecordedClock::decode(page),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[String]) -> Recorded {
        let start = StripeId { sequence: Sequence(77), sub: 3 };
        let through = Timestamp(20);
        let earlier = Earlier { latest: Timestamp(-7), lost: Timestamp::MIN };
        let earlier = (names.len() > 1).then_some(earlier);
        let new = Recorded::new(true, start, Timestamp(-5), names);
        Recorded { goes_on: true, through, earlier, ..new }
    }

    #[test]
    fn what_is_said_is_read_and_zeros_say_nothing() {
        assert_eq!(Recorded::decode(&[0; HEAD_BYTES]), None);
        for names in [vec![], vec!["eth0".to_owned(), String::new(), "wlan0".to_owned()]] {
            let recorded = of(&names);
            let mut page = [0; HEAD_BYTES];
            recorded.encode(&mut page);
            assert_eq!(Recorded::decode(&page), Some(recorded));
        }
    }

    #[test]
    fn as_many_names_stay_as_there_is_room_for() {
        let names: Vec<String> =
            (0..40).map(|number| format!("\u{e4}{number}").repeat(30)).collect();
        let recorded = of(&names);
        assert!(recorded.interfaces == 40 && (4..40).contains(&recorded.names.len()));
        let mut page = [0; HEAD_BYTES];
        recorded.encode(&mut page);
        assert!(page[NAMES_END..at::EARLIER].iter().all(|byte| *byte == 0));
        assert_eq!(Recorded::decode(&page), Some(recorded));
    }

    #[test]
    fn what_is_said_of_the_clock_is_read_and_zeros_say_nothing() {
        let state = ClockState {
            is_synchronised: true,
            estimated_error_us: 1_234,
            largest_error_us: u64::from(u32::MAX) + 1,
        };
        for (state, steps) in [(None, 0), (Some(state), 7), (Some(ClockState::default()), 65_535)] {
            for (of_kernel, of_adapter) in [(true, false), (false, true), (true, true)] {
                let said = RecordedClock { of_kernel, of_adapter, steps, state };
                let mut page = [0; HEAD_BYTES];
                Recorded { clock: Some(said), ..of(&[]) }.encode(&mut page);
                let read = Recorded::decode(&page).unwrap().clock.unwrap();
                let most = |state: ClockState| state.largest_error_us.min(u64::from(u32::MAX));
                assert_eq!(read.state.map(most), state.map(most));
                let state = read.state.map(|it| ClockState { largest_error_us: 0, ..it });
                let cut = said.state.map(|it| ClockState { largest_error_us: 0, ..it });
                assert_eq!(RecordedClock { state, ..read }, RecordedClock { state: cut, ..said });
            }
        }
    }

    /// Whatever stands there.
    #[test]
    fn no_bytes_make_it_panic() {
        for byte in 1..=255_u8 {
            let mut page = [byte; HEAD_BYTES];
            let said = Recorded::decode(&page);
            assert!(said.is_none_or(|said| said.start.sequence <= SEQUENCE_MAX));
            page[at::START..at::START + 8].fill(0);
            page[at::KIND] = KIND_FILES;
            assert!(Recorded::decode(&page).is_some());
        }
    }
}
