//! What an operator does to the volume between two recordings: a member is replaced, the volume
//! grows, superblocks are restored, everything is salvaged. Each may crash at any write.
//!
//! They are the steps of `upkeep`, which works on paths, on the disks of the rack.

use device::{Crash, Device, ReadAt};
use format::superblock::{SUPERBLOCK_COPIES, Spare, copy_offset};
use volume::{Error, Reader, Recognized, recognize, restore_superblocks, salvage};
use writer::{Writer, mount, mount_without, resilver};

use core::ops::ControlFlow;
use units::MemberId;

use crate::check::{Verdict, Violation, broken};
use crate::history::{bits, opener};
use crate::random::Random;
use crate::recorder::Course;
use crate::recorder::judge::{check_kept, read_all};
use crate::recorder::rack::place;
use crate::recorder::turns::Turns;

/// More disks than this no rack holds.
const DISKS_MAX: u8 = 14;

impl Course {
    /// Perhaps the user does something to the volume.
    pub(crate) fn verb(&mut self) -> Verdict {
        // Before it is certain what stays it is not known what must.
        if self.cycle == 0 || !self.owed.is_empty() || !self.random.percent(35) {
            return Ok(());
        }
        self.rack.heal_all();
        self.rack.plug_in((1 << self.rack.count()) - 1);
        match self.random.below(4) {
            0 => self.replace()?,
            1 => self.grow()?,
            2 => self.restore()?,
            _ => return self.salvage(),
        }
        // A volume that came out of it is whole: a mount says what it shows.
        self.rack.heal_all();
        self.rack.plug_in((1 << self.rack.count()) - 1);
        let (writer, reader) = self.mounted()?;
        let found = read_all(&reader)?;
        self.shape = (reader.geometry().data_columns, reader.geometry().parity_columns);
        drop(writer);
        check_kept(&self.kept, (&found, found.tail.unwrap_or_default()), |_| false)
            .map_err(|Violation(what)| Violation(format!("behind a verb: {what}")))
    }

    /// With everybody there a mount succeeds.
    fn mounted(&mut self) -> Verdict<(Writer, Reader)> {
        let disks = bits(self.rack.seats().into_iter().map(|(_, disk)| disk));
        let timeline = self.rack.timeline();
        let opener = opener(&mut self.random, &timeline);
        let (writer, _) = mount(self.rack.devices(disks), &opener)
            .map_err(|error| Violation(format!("behind a verb a mount fails: {error}")))?;
        let reader = writer
            .reader(self.rack.readers(disks))
            .map_err(|error| Violation(error.to_string()))?;
        let reader = self.unlocked(reader);
        Ok((writer, reader))
    }

    /// A member whose loss costs nothing, and the disk that has its seat.
    pub(crate) fn dispensable(&mut self) -> Verdict<Option<(MemberId, u8)>> {
        let reader = Reader::open(self.readers(u32::MAX))
            .map_err(|error| Violation(format!("a reader cannot open it: {error}")))?;
        let Some(span) = reader.span() else { return Ok(None) };
        let membership = reader.membership();
        let is_borne = |member: MemberId| {
            let parts =
                membership.redundancy(span.tail..span.acknowledged.sequence + 1, Some(member));
            parts.iter().all(|part| part.spare_members.is_some())
        };
        let seats: Vec<(MemberId, u8)> =
            self.rack.seats().into_iter().filter(|(member, _)| is_borne(*member)).collect();
        Ok(if seats.is_empty() { None } else { Some(self.random.pick(&seats)) })
    }

    fn arm_sometimes(&mut self) {
        if self.random.percent(50) {
            let after = self.random.below(120);
            let crashes = self.choose_crashes();
            self.rack.arm(after, crashes);
        }
    }

    /// What an interrupted verb left is judged by the next mount. Without a crash it has succeeded.
    fn settle_verb(&mut self, name: &'static str, done: Result<(), Error>) -> Verdict {
        let has_crashed = self.rack.settle();
        self.say(|| format!("{name}: {done:?}, crash {has_crashed}"));
        self.counters.add("crashes", u64::from(has_crashed));
        self.counters.add("crashes in verbs", u64::from(has_crashed));
        self.counters.add(name, 1);
        match done {
            Err(error) if !has_crashed => broken(format!("{name} fails: {error}")),
            _ => Ok(()),
        }
    }

    /// A blank disk that is not known.
    fn blank_disk(&mut self) -> (u8, Spare) {
        let disk = self.rack.add_disk();
        let uuid = [disk + 1; 16];
        (disk, Spare { uuid, path: place(usize::from(disk)) })
    }

    fn replace(&mut self) -> Verdict {
        let Some((member, old)) = self.dispensable()? else { return Ok(()) };
        if self.rack.count() >= DISKS_MAX {
            return Ok(());
        }
        let (new, spare) = self.blank_disk();
        let all = bits(self.rack.seats().into_iter().map(|(_, disk)| disk));
        let others = all & !(1 << old);
        self.arm_sometimes();
        let timeline = self.rack.timeline();
        let opener = opener(&mut self.random, &timeline);
        let rack = self.rack.clone();
        let work = || -> Result<(), Error> {
            let (mut writer, _) = mount_without(rack.devices(others), &[member], &opener)?;
            let device = rack.devices(1 << new).remove(0);
            writer.replace((member, spare), device, &timeline)?;
            let present = others | 1 << new;
            let open = |writer: &Writer| writer.reader(rack.readers(present));
            resilver(&mut writer, &open, &timeline, &mut |_, _| ControlFlow::Continue(()))?;
            writer.close(&timeline).map(drop)
        };
        // Who reads for the new member does so by threads: they take turns, so that a seed is one
        // history.
        let turns = Turns::new(&timeline, Random::new(self.digest ^ self.cycle));
        let done = work();
        self.await_rest(&turns)?;
        stage::stand_on(None);
        self.settle_verb("verbs: replace", done)
    }

    fn grow(&mut self) -> Verdict {
        let (data, parity) = self.shape;
        if self.rack.count() >= DISKS_MAX || data + parity >= 7 {
            return Ok(());
        }
        let more_parity = parity + u8::from(parity < 2 && self.random.percent(30));
        let (new, spare) = self.blank_disk();
        let all = bits(self.rack.seats().into_iter().map(|(_, disk)| disk));
        self.arm_sometimes();
        let timeline = self.rack.timeline();
        let opener = opener(&mut self.random, &timeline);
        let rack = self.rack.clone();
        let work = || -> Result<(), Error> {
            let (mut writer, _) = mount(rack.devices(all), &opener)?;
            let device = rack.devices(1 << new).remove(0);
            match writer.grow(vec![(spare, device)], more_parity, &timeline) {
                // The ring still holds too many shapes, or so many columns make none.
                Err(Error::TooManyShapes(_) | Error::Geometry { .. }) => {}
                grown => grown?,
            }
            writer.close(&timeline).map(drop)
        };
        let done = work();
        self.settle_verb("verbs: grow", done)
    }

    /// A member loses all copies of its superblock, and gets them back by what its heads say.
    fn restore(&mut self) -> Verdict {
        let Some((member, disk)) = self.dispensable()? else { return Ok(()) };
        let handle = self.rack.disk_handle(disk);
        let size_bytes = ReadAt::size_bytes(&handle);
        for copy in 0..SUPERBLOCK_COPIES {
            handle.damage(copy_offset(copy, size_bytes), |page| page.fill(0));
        }
        let disks = bits(self.rack.seats().into_iter().map(|(_, it)| it));
        let Ok(reader) = Reader::open(self.rack.readers(disks)) else { return Ok(()) };
        let found = recognize(&reader, &handle);
        self.say(|| format!("member {member} without superblocks is {found:?}"));
        match found {
            Recognized::Member { member: other, .. } if other != member => {
                broken(format!("member {member} is taken for {other}"))
            }
            Recognized::Member { is_current, .. } => {
                self.arm_sometimes();
                let mut device: Box<dyn Device> = self.rack.devices(1 << disk).remove(0);
                let done = restore_superblocks(&reader, device.as_mut(), (member, is_current));
                self.counters.add("verbs: restored as current", u64::from(is_current));
                self.settle_verb("verbs: restore superblocks", done)
            }
            // It was away for so long that nothing of it is of the newest slots.
            Recognized::Stranger | Recognized::Ahead => {
                self.counters.add("verbs: the member is not known any more", 1);
                Ok(())
            }
        }
    }

    /// Everything that was kept comes out of the disks as they lie there, with the superblocks of
    /// some of them gone.
    fn salvage(&mut self) -> Verdict {
        let disks: Vec<u8> = self.rack.seats().into_iter().map(|(_, disk)| disk).collect();
        let some_left = self.random.index(disks.len());
        let crashes = vec![Crash::Kill; disks.len()];
        let mut readers: Vec<Box<dyn ReadAt>> = Vec::new();
        for (index, (disk, crash)) in disks.iter().zip(crashes).enumerate() {
            let copy = self.rack.disk_handle(*disk).crash(crash);
            let size_bytes = ReadAt::size_bytes(&copy);
            if index != some_left && self.random.percent(30) {
                for number in 0..SUPERBLOCK_COPIES {
                    copy.damage(copy_offset(number, size_bytes), |page| page.fill(0));
                }
                self.counters.add("verbs: salvaged without a superblock", 1);
            }
            readers.push(Box::new(copy));
        }
        let salvaged =
            salvage(readers).map_err(|error| Violation(format!("salvage fails: {error}")))?;
        self.counters.add("verbs: salvage", 1);
        if !salvaged.strangers.is_empty() {
            self.counters.add("verbs: salvage takes a member for a stranger", 1);
            return Ok(());
        }
        let found = read_all(&self.unlocked(salvaged.reader))?;
        let tail = found.tail.unwrap_or_default();
        check_kept(&self.kept, (&found, tail), |_| false)
            .map_err(|Violation(what)| Violation(format!("salvaged: {what}")))
    }
}
