//! What befalls a recording: disks that fail, hang, are pulled and come back, questions, a paused
//! machine, a clock that is set; and its end.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use device::{Crash, Fault, MUTATIONS, Operation, Rule, Timeline};
use encryption::Keyring;
use record::Control;
use units::number::to_u64;
use volume::{Error, Reader};
use writer::{Opener, mount};

use crate::check::{Verdict, broken};
use crate::counters::Counters;
use crate::history::{bits, numbers};
use crate::random::Random;
use crate::recorder::judge::{Promise, read_all};
use crate::recorder::link::Wire;
use crate::recorder::rack::Rack;
use crate::recorder::turns::Turns;

/// Longest time that a question may stay without an answer: disks hang for less.
const PATIENCE: Duration = Duration::from_mins(5);
/// A disk hangs for less than this.
const HANG_NS: u64 = 60_000_000_000;
const FLUSHES: &[Operation] = &[Operation::Flush];

/// What threads of a recording signal each other.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// The volume is open.
    pub(crate) began: AtomicBool,
    /// The recording shall end.
    pub(crate) stop: AtomicBool,
    /// It has ended.
    pub(crate) over: AtomicBool,
    /// What was promised last.
    pub(crate) promise: Mutex<Promise>,
}

impl Signals {
    pub(crate) fn promise(&self) -> Promise {
        *stage::lock(&self.promise)
    }

    pub(crate) fn note(&self, change: impl FnOnce(&mut Promise)) {
        change(&mut stage::lock(&self.promise));
    }
}

/// The course of events beside a recording.
#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) rack: Rack,
    /// Of who may read, where packets are encrypted.
    pub(crate) keyring: Option<Arc<Keyring>>,
    pub(crate) wire: Wire,
    pub(crate) timeline: Timeline,
    pub(crate) turns: Arc<Turns>,
    pub(crate) random: Random,
    pub(crate) control: Control,
    pub(crate) signals: Arc<Signals>,
    /// When it shall end.
    pub(crate) stop_ns: i64,
    /// Members that may be lost at a time, besides those that are.
    pub(crate) budget: u32,
    /// Disks that something befell, and those of them that were pulled.
    pub(crate) hurt: u32,
    pub(crate) pulled: u32,
    /// A flush fails that no other member makes up for: the recording breaks off.
    pub(crate) is_fatal: bool,
    /// Another machine had the volume: what was written to each disk by its end.
    pub(crate) taken_over: Option<Vec<u64>>,
    pub(crate) counters: Counters,
    pub(crate) is_traced: bool,
}

impl Fate {
    pub(crate) fn run(mut self) -> (Self, Verdict) {
        while !self.is_over() {
            stage::sleep(Duration::from_nanos(1 + self.random.below(300_000_000)));
            if self.timeline.now_ns() >= self.stop_ns {
                self.signals.stop.store(true, Ordering::Relaxed);
            }
            if !self.is_over()
                && self.signals.began.load(Ordering::Relaxed)
                && let Err(what) = self.event()
            {
                return (self, Err(what));
            }
        }
        let verdict = self.judge_takeover();
        (self, verdict)
    }

    pub(crate) fn say(&self, what: &str) {
        if self.is_traced {
            eprintln!("      {:>15}  {what}", self.timeline.now_ns());
        }
    }

    fn is_over(&self) -> bool {
        self.signals.over.load(Ordering::Relaxed)
    }

    fn event(&mut self) -> Verdict {
        if self.taken_over.is_some() {
            return Ok(());
        }
        match self.random.below(100) {
            0..12 => self.trouble(),
            12..20 => self.put_back(),
            20..45 => return self.ask(),
            45..60 => self.wire.set_gap(200_000 << self.random.below(8)),
            60..63 => {
                self.timeline.advance_by(self.random.below(20_000_000_000));
                self.counters.add("recorder: the machine was paused", 1);
            }
            63..66 => {
                let seconds = i64::try_from(self.random.below(7200)).expect("small") - 3600;
                self.timeline.jump_realtime(seconds * 1_000_000_000);
                self.counters.add("recorder: clock jumps", 1);
            }
            66..76 => return self.look(),
            76..78 => return self.rival(),
            78..80 => return self.take_over(),
            80..82 => self.fail_for_good(),
            _ => {}
        }
        Ok(())
    }

    /// A disk of a member gets into trouble, if the parity bears one more.
    fn trouble(&mut self) {
        if self.hurt.count_ones() >= self.budget {
            return;
        }
        let seats: Vec<u8> = self.rack.seats().into_iter().map(|(_, disk)| disk).collect();
        let well: Vec<u8> = numbers(bits(seats.into_iter()) & !self.hurt).collect();
        if well.is_empty() {
            return;
        }
        let disk = self.random.pick(&well);
        self.hurt |= 1 << disk;
        let what = match self.random.below(5) {
            0 => {
                self.rack.add_rule(disk, Rule::new(Fault::Error, MUTATIONS));
                "recorder: a disk fails"
            }
            1 => {
                self.rack.add_rule(disk, Rule::new(Fault::Error, MUTATIONS).times(1));
                "recorder: one write or flush fails"
            }
            2 => {
                self.pulled |= 1 << disk;
                self.rack.pull(disk, Crash::Rows { seed: self.random.next() });
                "recorder: a disk is pulled"
            }
            3 => {
                self.rack.add_rule(disk, Rule::new(Fault::FlushForgets, FLUSHES).times(1));
                "recorder: a flush fails and forgets"
            }
            _ => {
                self.rack.disk_handle(disk).stall(self.random.below(HANG_NS));
                "recorder: a disk hangs"
            }
        };
        self.say(&format!("{what} ({disk})"));
        self.counters.add(what, 1);
    }

    /// A flush fails and forgets what it should have covered, where no member may be lost: the
    /// next one succeeds, and nothing must be called stored by it.
    fn fail_for_good(&mut self) {
        if self.budget > 0 || self.hurt != 0 {
            return;
        }
        let disks: Vec<u8> = self.rack.seats().into_iter().map(|(_, disk)| disk).collect();
        if disks.is_empty() {
            return;
        }
        let disk = self.random.pick(&disks);
        (self.hurt, self.is_fatal) = (1 << disk, true);
        self.rack.add_rule(disk, Rule::new(Fault::FlushForgets, FLUSHES).times(1));
        self.say(&format!("a flush will fail, which no recording survives ({disk})"));
        self.counters.add("recorder: a flush fails and forgets, without parity", 1);
    }

    /// A disk that was pulled is there again.
    fn put_back(&mut self) {
        let away: Vec<u8> = numbers(self.pulled).collect();
        if !away.is_empty() {
            let disk = self.random.pick(&away);
            self.pulled &= !(1 << disk);
            self.rack.put_back(disk);
            self.counters.add("recorder: a disk is put back", 1);
        }
    }

    /// Everything up to now shall be durable, and is then there.
    fn ask(&mut self) -> Verdict {
        let first = self.wire.offered_count();
        let is_answered = self.control.sync(PATIENCE);
        if self.rack.has_crashed() {
            return Ok(());
        }
        if !is_answered && !self.is_over() {
            return broken("STUCK: a question stays without an answer".to_owned());
        }
        self.say(&format!("a question about {first} packets: {is_answered}"));
        if is_answered && !self.is_over() {
            self.signals.note(|promise| promise.told = promise.told.max(first));
            self.counters.add("recorder: questions answered", 1);
        }
        Ok(())
    }

    /// Another machine tries to open the volume for writing.
    fn rival(&mut self) -> Verdict {
        let disks = bits(self.rack.seats().into_iter().map(|(_, disk)| disk)) & !self.hurt;
        let timeline = self.timeline.clone();
        let tried = mount(self.rack.devices_elsewhere(disks), &self.stranger(&timeline));
        self.say(&format!("a rival tries: {:?}", tried.as_ref().map(drop)));
        match tried {
            // It was over meanwhile, and a claim ends.
            _ if self.is_over() || self.rack.has_crashed() => {}
            Ok(_) => return broken("two have the volume open for writing".to_owned()),
            Err(Error::Claimed { .. }) => self.counters.add("recorder: rivals refused", 1),
            Err(_) => self.counters.add("recorder: rivals that find too little", 1),
        }
        Ok(())
    }

    /// Who opens the volume on another machine.
    pub(crate) fn stranger<'a>(&mut self, timeline: &'a Timeline) -> Opener<'a> {
        let id = [self.random.next().to_le_bytes(), self.random.next().to_le_bytes()];
        Opener {
            id: *id.as_flattened().as_array().expect("two times eight bytes"),
            is_gone: &|_| false,
            ..Opener::alone(timeline)
        }
    }

    /// A reader beside the recorder: what it shows is right.
    fn look(&mut self) -> Verdict {
        let devices = self.rack.readers(bits(self.rack.seats().into_iter().map(|(_, it)| it)));
        // Members come and go while it opens and reads.
        if let Ok(reader) = Reader::open(devices) {
            let shown = read_all(&reader.unlocked(self.keyring.as_ref()))?;
            let count = to_u64(shown.packets.len());
            self.counters.add("recorder: packets read beside recording", count);
        }
        Ok(())
    }
}
