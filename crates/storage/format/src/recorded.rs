//! What a recording had covered when a stripe was submitted: since when, and up to when, every
//! packet is in that stripe or one before it, or is counted as lost there.
//!
//! Layout: docs/format.md, Recorded. It lies in the head behind the MAC, outside of the common
//! part, so it has no say in a stripe's identity; checksum and MAC cover it.

use units::Timestamp;

use crate::field::{get_i64, get_u16, get_u64, put};
use crate::head::{HEAD_BYTES, SEQUENCE_MAX, StripeId};

/// Bytes of the names of interfaces, with their lengths, that a head has space for.
const NAME_BYTES_MAX: usize = 312;
/// Longest name; what is behind is cut.
const NAME_LEN_MAX: usize = 64;

const KIND_LIVE: u8 = 1;
const KIND_FILES: u8 = 2;
const FLAG_GOES_ON: u8 = 1;

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
}

const END: usize = at::NAMES + NAME_BYTES_MAX;
const _: () = assert!(END == 4048 && END <= HEAD_BYTES - 36);

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
    /// How many interfaces were recorded.
    pub interfaces: u16,
    /// Names of the first of them, as many as there is space for.
    pub names: Vec<String>,
}

impl Recorded {
    /// A stretch that begins.
    pub fn new(is_live: bool, start: StripeId, from: Timestamp, interfaces: &[String]) -> Self {
        let mut room = NAME_BYTES_MAX;
        let mut names = Vec::new();
        for name in interfaces {
            let kept = name.get(..name.floor_char_boundary(NAME_LEN_MAX)).unwrap_or_default();
            let Some(left) = room.checked_sub(1 + kept.len()) else { break };
            room = left;
            names.push(kept.to_owned());
        }
        let interfaces = u16::try_from(interfaces.len()).unwrap_or(u16::MAX);
        Self { is_live, goes_on: false, start, from, through: from, interfaces, names }
    }

    pub(crate) fn encode(&self, page: &mut [u8; HEAD_BYTES]) {
        put(page, at::START, &self.start.sequence.to_le_bytes());
        put(page, at::START + 8, &self.start.sub.to_le_bytes());
        put(page, at::KIND, &[if self.is_live { KIND_LIVE } else { KIND_FILES }]);
        put(page, at::FLAGS, &[if self.goes_on { FLAG_GOES_ON } else { 0 }]);
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
    }

    /// `None` where nothing is said, or nothing that is known here.
    pub(crate) fn decode(page: &[u8; HEAD_BYTES]) -> Option<Self> {
        let (kind, flags) = (*page.get(at::KIND)?, *page.get(at::FLAGS)?);
        let start =
            StripeId { sequence: get_u64(page, at::START), sub: get_u16(page, at::START + 8) };
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
            interfaces: get_u16(page, at::INTERFACES),
            names,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[String]) -> Recorded {
        let start = StripeId { sequence: 77, sub: 3 };
        let through = Timestamp(20);
        Recorded { goes_on: true, through, ..Recorded::new(true, start, Timestamp(-5), names) }
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
        assert!(page[END..].iter().all(|byte| *byte == 0));
        assert_eq!(Recorded::decode(&page), Some(recorded));
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
