//! The target under test, and the callback that takes how far it is.

use core::ops::{ControlFlow, Range};

use device::{Device, ReadAt};
use guard::{Changed, Identity};
use units::{Random, Sleep};

use crate::error::Error;
use crate::folder::Folder;
use crate::plan::{Part, Provided};

/// What measuring on a bench gives.
pub(crate) type Measured<T> = Result<T, Error>;

/// Hears the part, what is done of it, and what there is of it in all; a break stops the
/// qualification in order.
pub type Tell<'a> = &'a mut dyn FnMut(Part, u64, u64) -> ControlFlow<()>;

/// Between two looks at whether the device is still the same.
const LOOK_NS: i64 = 1_000_000_000;
/// Between two questions to its drives how they are.
const ASK_NS: i64 = 60 * LOOK_NS;
/// Ranges that are kept apart; of more, the closest are joined.
const RANGES_MAX: usize = 64;

/// Where parts run: a target, a clock, chance, and an ear.
pub struct Bench<'a> {
    pub(crate) reader: &'a dyn ReadAt,
    pub(crate) writer: Option<&'a mut dyn Device>,
    pub(crate) folder: Option<&'a dyn Folder>,
    pub(crate) processor: Option<&'a dyn Fn() -> Result<u64, Error>>,
    pub(crate) clock: &'a dyn Sleep,
    pub(crate) random: Random,
    pub(crate) tell: Tell<'a>,
    pub(crate) written: Written,
    pub(crate) is_interrupted: bool,
    /// The devices that are written to, and when they were last looked at.
    identities: Vec<&'a Identity>,
    looked_ns: i64,
    asked_ns: i64,
    /// One is not what it was: nothing more is written.
    pub(crate) changed: Option<Changed>,
}

impl core::fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bench").field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl<'a> Bench<'a> {
    /// `reader` and `writer` are the same target; without a writer nothing is written. `clock` is
    /// the time that the target lives in, `seed` decides all that is left to chance.
    pub fn new(
        (reader, writer): (&'a dyn ReadAt, Option<&'a mut dyn Device>),
        clock: &'a dyn Sleep,
        seed: u64,
        tell: Tell<'a>,
    ) -> Self {
        Self {
            reader,
            writer,
            folder: None,
            processor: None,
            clock,
            random: Random::new(seed),
            tell,
            written: Written::default(),
            is_interrupted: false,
            identities: Vec::new(),
            looked_ns: i64::MIN,
            asked_ns: i64::MIN,
            changed: None,
        }
    }

    /// Stops when one of the devices is not the same any more.
    #[must_use]
    pub(crate) fn guarded(self, devices: impl IntoIterator<Item = &'a Identity>) -> Self {
        Self { identities: devices.into_iter().collect(), ..self }
    }

    /// With a directory beside the target, for the part that writes files.
    #[must_use]
    pub fn with_folder(self, folder: &'a dyn Folder) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// With a processor: `used_ns` says how much time of it this process has had so far.
    #[must_use]
    pub fn with_processor(self, used_ns: &'a dyn Fn() -> Result<u64, Error>) -> Self {
        Self { processor: Some(used_ns), ..self }
    }

    /// What parts may use.
    pub(crate) fn provided(&self) -> Provided {
        Provided {
            writer: self.writer.is_some(),
            folder: self.folder.is_some(),
            processor: self.processor.is_some(),
        }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.reader.size_bytes()
    }

    pub(crate) fn now_ns(&self) -> i64 {
        self.clock.boottime_ns()
    }

    /// Tells, and says whether to stop.
    pub(crate) fn is_over(&mut self, part: Part, done: u64, total: u64) -> bool {
        self.is_interrupted |= (self.tell)(part, done, total).is_break();
        let now_ns = self.now_ns();
        if !self.identities.is_empty() && now_ns.saturating_sub(self.looked_ns) >= LOOK_NS {
            self.looked_ns = now_ns;
            let mut devices = self.identities.iter();
            self.changed = devices.find_map(|device| device.changed());
            if self.changed.is_none() && now_ns.saturating_sub(self.asked_ns) >= ASK_NS {
                self.asked_ns = now_ns;
                let mut devices = self.identities.iter();
                self.changed = devices.find_map(|device| device.ailing());
            }
            self.is_interrupted |= self.changed.is_some();
        }
        self.is_interrupted
    }
}

/// Ranges that contain every byte written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written(Vec<Range<u64>>);

impl Written {
    pub(crate) fn add(&mut self, offset: u64, len: u64) {
        let new = offset..offset + len;
        let begin = self.0.partition_point(|range| range.end < new.start);
        let end = self.0.partition_point(|range| range.start <= new.end);
        let touched = self.0.get(begin..end).unwrap_or_default().iter();
        let joined =
            touched.fold(new, |sum, range| sum.start.min(range.start)..sum.end.max(range.end));
        self.0.splice(begin..end.max(begin), [joined]);
        if self.0.len() > RANGES_MAX {
            self.join_closest();
        }
    }

    fn join_closest(&mut self) {
        let gaps = self.0.windows(2).enumerate().filter_map(|(at, pair)| match pair {
            [first, second] => Some((second.start - first.end, at)),
            _ => None,
        });
        let Some((_, at)) = gaps.min() else { return };
        let second = self.0.remove(at + 1);
        if let Some(first) = self.0.get_mut(at) {
            first.end = second.end;
        }
    }

    pub(crate) fn into_ranges(self) -> Vec<Range<u64>> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let mut written = Written::default();
        for (at, len) in [(10, 5), (30, 5), (15, 5), (0, 1), (18, 12)] {
            written.add(at, len);
        }
        assert_eq!(written.into_ranges(), [0..1, 10..35]);
    }

    #[test]
    fn many_ranges_become_fewer_that_contain_them() {
        let mut written = Written::default();
        let mut random = Random::new(1);
        let places: Vec<u64> = (0..1000).map(|_| random.below(1 << 40)).collect();
        for &at in &places {
            written.add(at, 4096);
        }
        let ranges = written.into_ranges();
        assert!(ranges.len() <= RANGES_MAX && ranges.is_sorted_by_key(|range| range.start));
        let is_in =
            |at: &u64| ranges.iter().any(|range| range.start <= *at && at + 4096 <= range.end);
        assert!(places.iter().all(is_in));
    }
}
