//! One history: a volume that is mounted, written and stopped by crashes again and again.

use std::sync::Arc;

use device::{Crash, Fault, Modelled, OPERATIONS, Pool, Rule};
use encryption::Keyring;
use format::claim::INTERVAL_MS;
use format::head::{HeadKey, StripeId, VolumeId};
use format::superblock::MemberEntry;
use units::{MemberId, Sequence, Sleep, Timestamp, mix};
use volume::{Error, Identity, Reader, create_for};
use writer::{Opener, Recovery, Writer, mount_members};

use crate::check::{Look, Scene, Verdict, Violation, broken};
use crate::counters::Counters;
use crate::disks::Disks;
use crate::keys::{keyring, random_key, recipients};
use crate::plan::{Mode, Plan};
use crate::quorum::{may_refuse, newest_start};
use crate::random::Random;
use crate::truth::{Fate, Truth};

/// Mounts that may fail one after the other before the user asks why.
const ATTEMPTS: u64 = 40;

/// No mount has to do all that its bound counts.
const READS_PERCENT: u64 = 80;

/// What a history came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    pub(crate) counters: Counters,
    /// Depends on everything that happened: the same for the same seed.
    pub(crate) digest: u64,
    pub(crate) verdict: Verdict,
}

/// Runs the history of a seed; `trace` says every step on standard error.
pub(crate) fn run(seed: u64, trace: bool) -> Outcome {
    let mut random = Random::new(seed);
    let plan = Plan::new(&mut random);
    let mut history = History::new(plan, random);
    history.is_traced = trace;
    history.say(|| format!("{:?}", history.plan));
    let verdict = history.all();
    history.counters.add("encrypted bodies", history.disks.bodies_compared());
    let verdict = verdict.map_err(|Violation(what)| {
        let Plan { mode, geometry, window, .. } = &history.plan;
        let (data, parity) = (geometry.data_columns, geometry.parity_columns);
        let (slots, piece) = (geometry.slots, geometry.piece_bytes);
        let cycle = history.cycle;
        Violation(format!(
            "{data}+{parity}, {slots} slots of {piece}, W {window}, {mode:?}, cycle {cycle}: {what}"
        ))
    });
    Outcome { counters: history.counters, digest: history.digest, verdict }
}

/// A running history.
pub(crate) struct History {
    pub(crate) plan: Plan,
    pub(crate) random: Random,
    pub(crate) disks: Disks,
    pub(crate) pool: Pool,
    pub(crate) truth: Truth,
    pub(crate) counters: Counters,
    pub(crate) digest: u64,
    pub(crate) cycle: u64,
    /// Members of which nothing is certain, for good.
    pub(crate) bad: u32,
    /// Members that something befell since the mount: what was in flight may miss them.
    pub(crate) troubled: u32,
    /// Damage is done below this sequence only: the watermark above it is on the disks.
    pub(crate) settled_below: Sequence,
    /// Earlier states of the bad members.
    pub(crate) snapshots: Vec<(u8, Modelled)>,
    /// The writer stopped in order and nothing was damaged since.
    pub(crate) stopped: bool,
    /// A member that cannot be done without is about to fail.
    pub(crate) is_fatal: bool,
    /// A writer that does not know what has happened since it was paused.
    pub(crate) paused: Option<Writer>,
    is_traced: bool,
    /// Of who may read; all keys that any writer made are in it.
    keyring: Arc<Keyring>,
}

impl History {
    fn new(plan: Plan, mut random: Random) -> Self {
        let disks = Disks::new(&plan.sizes, plan.takes_time, &mut random);
        let members = plan.members();
        let piece_bytes = usize::try_from(plan.options.piece_bytes).expect("at most 2 MiB");
        let columns = usize::from(plan.geometry.data_columns) * (3 * usize::from(plan.window) + 3);
        let pool = Pool::new(columns, piece_bytes).expect("memory for a few columns");
        let bad = match plan.mode {
            Mode::Faulty { bad } => some_of(members, bad, &mut random),
            _ => 0,
        };
        let (truth, counters) = (Truth::default(), Counters::default());
        Self {
            plan,
            random,
            disks,
            pool,
            truth,
            counters,
            digest: 0,
            cycle: 0,
            bad,
            troubled: 0,
            settled_below: Sequence(0),
            snapshots: Vec::new(),
            stopped: false,
            is_fatal: false,
            paused: None,
            is_traced: false,
            keyring: keyring([7; 16]),
        }
    }

    /// A reader on these members, who can decrypt.
    pub(crate) fn reader(&self, members: u32) -> Result<Reader, Error> {
        Ok(self.unlocked(Reader::open(self.disks.readers(members))?))
    }

    fn unlocked(&self, reader: Reader) -> Reader {
        reader.unlocked(Some(&self.keyring))
    }

    /// Lets a writer encrypt, if the volume is encrypted.
    fn seal_with(&mut self, writer: &mut Writer) -> Result<(), Error> {
        if !self.plan.is_encrypted {
            return Ok(());
        }
        writer.seal_with(random_key(self.digest ^ self.cycle), Arc::clone(&self.keyring))
    }

    fn all(&mut self) -> Verdict {
        self.create();
        let cycles = self.plan.cycles;
        while self.cycle < cycles {
            if self.paused.is_none() {
                self.damage();
                self.look_before_mount()?;
                self.scrub()?;
            }
            let Some(writer) = self.mount_and_look()? else { return Ok(()) };
            if let Some(writer) = self.resilver(writer)? {
                self.record(writer)?;
            }
            self.cycle += 1;
        }
        if self.plan.mode == Mode::Beyond { self.break_beyond() } else { Ok(()) }
    }

    fn create(&mut self) {
        let entry = |member: u8| MemberEntry::new([member + 1; 16], String::new());
        let mut key = [0; 32];
        key.fill_with(|| self.random.next().to_le_bytes()[0]);
        let identity = Identity {
            volume_id: VolumeId([7; 16]),
            head_key: HeadKey(key),
            members: (0..self.plan.members()).map(entry).collect(),
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let mut devices = self.disks.in_order();
        let recipients = recipients(self.plan.is_encrypted);
        let made = create_for(&mut devices, &self.plan.options, &identity, &recipients);
        let made = made.expect("the sizes fit");
        self.plan.geometry = made.geometry;
        self.plan.window = made.window;
    }

    /// Every member; bit m stands for member m.
    pub(crate) fn everybody(&self) -> u32 {
        (1 << self.plan.members()) - 1
    }

    /// Tells who follows this history what happens.
    pub(crate) fn say(&self, what: impl FnOnce() -> String) {
        if self.is_traced {
            eprintln!("{:>4}  {}", self.cycle, what());
        }
    }

    /// Mixes what happened into the digest.
    pub(crate) fn note(&mut self, what: u64) {
        self.digest = mix(self.digest ^ what);
    }

    pub(crate) fn acknowledge(&mut self, watermark: StripeId) {
        let count = self.truth.acknowledge(watermark);
        self.counters.add("stripes acknowledged", count);
    }

    pub(crate) fn note_stripe(&mut self, id: StripeId) {
        self.note(id.sequence.get() << 16 | u64::from(id.sub));
    }

    /// Of the members in `among` those whose superblock can be read and is theirs: who looks for
    /// members leaves out the others.
    pub(crate) fn with_superblock(&self, among: u32) -> u32 {
        let one = |member: &u8| {
            Reader::of_members(self.disks.readers(1 << member))
                .is_ok_and(|reader| reader.membership().of(MemberId(*member)).is_some())
        };
        let found = self.disks.among(among).map(|(member, _)| member).filter(one);
        found.fold(0, |bits, member| bits | 1 << member)
    }

    pub(crate) fn scene(&self, readable: u32) -> Scene {
        let data = u32::from(self.plan.geometry.data_columns);
        let may_revive = self.bad.count_ones() >= data;
        Scene { readable, doubtful: self.bad, may_revive, exact: false }
    }

    /// A reader that opens what a crash left behind, before anybody repairs it.
    fn look_before_mount(&mut self) -> Verdict {
        if !self.random.percent(20) {
            return Ok(());
        }
        let readable = self.with_superblock(self.everybody());
        let reader = match self.reader(readable) {
            Ok(reader) => reader,
            Err(error) => return broken(format!("a reader cannot open the volume: {error}")),
        };
        let Some(span) = reader.span() else { return Ok(()) };
        let shown = span.acknowledged;
        let most = self.truth.acknowledged.max(self.truth.stop);
        let may_begin = || newest_start(&self.disks, readable) >= shown.sequence;
        if shown > most && (self.truth.epoch_unseen || self.bad != 0) && may_begin() {
            self.counters.add("readers that show what a cut mount kept", 1);
        } else if shown > most {
            let known = self.truth.acknowledged;
            return broken(format!("a reader shows {shown}, acknowledged is {known}"));
        }
        self.counters.add("readers before a mount", 1);
        self.note_stripe(shown);
        let scene = self.scene(readable);
        // What an unfinished mount judged may be shown now and judged otherwise by the next.
        let mut truth = self.truth.clone();
        Look::new(&mut truth, (&reader, &self.disks), scene, &mut self.counters)
            .read()
            .map_err(at("before a mount"))?;
        Ok(())
    }

    /// Mounts until it succeeds; mounts may crash themselves. `None`: it may refuse for good.
    fn mount(&mut self) -> Verdict<Option<Writer>> {
        // Of a mount that failed beside a bad member: those that must do without it, or may not.
        let mut without_bad = None;
        for attempt in 0..ATTEMPTS {
            let present = match without_bad.take() {
                Some(honest) => self.with_superblock(honest),
                None => self.choose_present(attempt),
            };
            self.arm_in_mount(present);
            self.read_faults(present);
            let flaky = self.fail_in_mount(present);
            let reads_before: Vec<u64> = self.disks.work().iter().map(|work| work.reads).collect();
            let devices = self.disks.candidates(present, &mut self.random);
            let timeline = self.disks.timeline().clone();
            let mut opener = opener(&mut self.random, &timeline);
            if self.paused.is_some() {
                opener.is_gone = &|_| false;
            }
            let mounted = mount_members(devices, &[], &opener);
            self.say(|| match &mounted {
                Ok((writer, recovery)) => {
                    let (epoch, at) = (writer.epoch(), writer.acknowledged());
                    format!("mount by {present:b}: epoch {epoch} at {at}, {recovery:?}")
                }
                Err(error) => format!("mount by {present:b}: {error}"),
            });
            self.disks.clear_rules();
            self.disks.await_answers();
            if self.disks.has_crashed() {
                if mounted.is_ok() {
                    return broken("a mount succeeds though its disks are gone".to_owned());
                }
                drop(mounted);
                self.crashed("crashes in a mount");
                self.truth.decided_unseen(present & !flaky);
                self.doubt_what_is_judged(self.truth.acknowledged, present);
                self.stopped = false;
                continue;
            }
            self.disks.settle(&mut self.random);
            // A mount that a member ends, or that begins again without it, has prepared an epoch.
            self.stopped &= flaky == 0;
            match mounted {
                Ok((mut writer, recovery)) => {
                    let left = writer.expelled().len();
                    self.check_mount(&reads_before, present, (&recovery, left))?;
                    let sealed = self.seal_with(&mut writer);
                    sealed.map_err(|error| Violation(error.to_string()))?;
                    if recovery.completed > 0 || !recovery.failed.is_empty() {
                        self.doubt_what_is_judged(writer.acknowledged(), present);
                    }
                    return Ok(Some(writer));
                }
                Err(error) => {
                    self.disks.arrive();
                    self.doubt_what_a_refused_mount_did(present, flaky);
                    self.counters.add("mounts refused", u64::from(is_refusal(&error)));
                    if present & self.bad == 0 {
                        self.judge_refusal(&error, present, flaky)?;
                    } else {
                        self.counters.add("mounts that a bad member ended, tried without it", 1);
                        without_bad = (!self.is_new()).then_some(present & !self.bad);
                    }
                }
            }
        }
        // Of a new volume all are needed, and a bad one may end each mount.
        if self.mounts_without_bad() && !self.is_new() {
            return broken("no mount succeeds, with all that are needed there".to_owned());
        }
        self.counters.add("histories that end without a quorum", 1);
        Ok(None)
    }

    /// Where members ended it, its epoch may have begun before.
    fn doubt_what_a_refused_mount_did(&mut self, present: u32, flaky: u32) {
        if flaky != 0 {
            self.truth.decided_unseen(present & !flaky);
        }
        self.doubt_what_is_judged(self.truth.acknowledged, present);
    }

    /// Some mounts end with a crash.
    fn arm_in_mount(&mut self, present: u32) {
        if self.random.percent(30) {
            let after = self.random.below(22 * u64::from(present.count_ones()) + 8);
            let crashes = self.choose_crashes();
            self.disks.arm(after, crashes);
        }
    }

    /// A mount has perhaps computed pieces that were missing, from the watermark that it found on,
    /// damaged ones too.
    fn doubt_what_is_judged(&mut self, acknowledged: StripeId, present: u32) {
        let judged = 2 * u64::from(self.plan.window) + 1;
        let sequence = acknowledged.sequence.saturating_sub(judged);
        self.truth.doubt_damaged(StripeId { sequence, sub: 0 }, present);
    }

    /// Mounts, and looks at what is there.
    pub(crate) fn mount_and_look(&mut self) -> Verdict<Option<Writer>> {
        let Some(writer) = self.mount()? else { return Ok(None) };
        self.look_at_mounted(&writer)?;
        Ok(Some(writer))
    }

    /// The armed crash has come: the disks are now as it left them.
    pub(crate) fn crashed(&mut self, how: &'static str) {
        assert!(self.disks.settle(&mut self.random), "the crash has come");
        // It was on the same machine after all.
        self.paused = None;
        self.say(|| how.to_owned());
        self.counters.add("crashes", 1);
        self.counters.add(how, 1);
        self.note(11);
    }

    fn choose_present(&mut self, attempt: u64) -> u32 {
        let all = self.everybody();
        let mut present = all;
        let absent = match self.plan.mode {
            Mode::Honest { absent } | Mode::Rot { absent, .. } => absent,
            Mode::Faulty { .. } | Mode::Beyond => 0,
        };
        let is_new = self.is_new();
        if attempt < 3 {
            for _ in 0..absent {
                if self.random.percent(35) {
                    let member = self.random.below(u64::from(self.plan.members()));
                    present &=
                        if self.may_lack(present, 1 << member) { !(1 << member) } else { all };
                }
            }
            if !is_new && self.random.percent(20) {
                present &= !some_bits(self.bad, &mut self.random);
            }
        } else if self.mounts_without_bad() && !is_new {
            present &= !self.bad;
        }
        self.counters.add("mounts with absent members", u64::from(present != all));
        let present = self.with_superblock(present);
        self.note(u64::from(present));
        present
    }

    /// Whether one more than those that are not in `present` may be missing. Where rows are damaged
    /// as well, a member that missed something counts like one that is missing: the parity does not
    /// bear all three.
    pub(crate) fn may_lack(&self, present: u32, member: u32) -> bool {
        let (absent, behind) = match self.plan.mode {
            Mode::Honest { absent } => (absent, 0),
            Mode::Rot { absent, .. } => (absent, self.truth.behind()),
            Mode::Faulty { .. } | Mode::Beyond => return false,
        };
        let lacking = self.everybody() & (!present | behind | member);
        lacking.count_ones() <= u32::from(absent)
    }

    /// Nothing was ever acknowledged: a mount needs every member.
    fn is_new(&self) -> bool {
        self.truth.acknowledged == StripeId::default()
    }

    /// The honest members alone are a quorum.
    pub(crate) fn mounts_without_bad(&self) -> bool {
        let honest = (self.everybody() & !self.bad).count_ones();
        let columns = u32::from(self.plan.members());
        let data = u32::from(self.plan.geometry.data_columns);
        honest >= data.max(columns + 1 - data)
    }

    /// Whatever epochs may have begun unseen: those at hand who belong to each of them are a quorum
    /// of it, if they are enough.
    fn judge_refusal(&mut self, error: &Error, present: u32, flaky: u32) -> Verdict {
        let (columns, data) = (self.plan.members(), self.plan.geometry.data_columns);
        let here = present & !flaky;
        let certain = (here & self.truth.deciders & self.truth.joined).count_ones();
        let needed = if self.is_new() { columns } else { data.max(columns + 1 - data) };
        if is_refusal(error) && certain < u32::from(needed) {
            if here.count_ones() < u32::from(needed) {
                self.counters.add("mounts refused with too few members", 1);
                return Ok(());
            }
            // Epochs may have begun unseen: what the disks say of them decides. One that fails in
            // the mount may have been asked before.
            let kept = self.truth.facts.iter().rev().find(|(_, fact)| fact.fate == Fate::Kept);
            let known = (u32::from(data), kept.map_or(Sequence(0), |(id, _)| id.sequence));
            if [here, present].iter().any(|&here| may_refuse(&self.disks, here, known)) {
                self.counters.add("mounts refused by what the superblocks say", 1);
                return Ok(());
            }
        }
        broken(format!("OVER-REFUSAL: a mount by {here:b} of {present:b} fails: {error}"))
    }

    /// While a mount looks at it, an honest member begins to fail or to hang, if the parity bears
    /// one more.
    fn fail_in_mount(&mut self, present: u32) -> u32 {
        let bearable = numbers(present).filter(|&member| self.may_lack(present, 1 << member));
        let candidates: Vec<u8> = bearable.collect();
        if candidates.is_empty() || present.count_ones() < 2 || !self.random.percent(15) {
            return 0;
        }
        let member = self.random.pick(&candidates);
        let after = self.random.below(80);
        let ns = 11_000_000_000 + self.random.below(60_000_000_000);
        let (name, rule) = if self.random.percent(50) {
            ("fault: a member fails in a mount", Rule::new(Fault::Error, OPERATIONS))
        } else {
            ("fault: a member hangs in a mount", Rule::new(Fault::Hangs { ns }, OPERATIONS))
        };
        self.say(|| format!("{name}: {member}, after {after}"));
        self.disks.add_rule(member, rule.after(after));
        self.counters.add(name, 1);
        1 << member
    }

    /// The reads of a mount are bounded, whatever the ring holds. So many members failed when it
    /// had come up and wrote keys anew.
    fn check_mount(
        &mut self,
        before: &[u64],
        present: u32,
        (recovery, left): (&Recovery, usize),
    ) -> Verdict {
        let window = u64::from(self.plan.window);
        let slots = self.plan.geometry.slots;
        let rows = u64::from(self.plan.geometry.rows_per_slot());
        let probes = 10 * u64::from(slots.ilog2() + 1);
        let scan = if recovery.scanned_all { slots } else { 0 };
        // Superblocks, anchor, window, slots in all rows, slots of the epoch, slots judged. A slot
        // with an unreadable row is read row by row.
        let slots_read = (3 * window + 1) + (window + 1) + (2 * window + 1);
        let heads = 4 + 4 * window + probes + (4 * window + 1) + scan + 3 * window;
        let work = self.disks.work();
        for (member, _) in self.disks.among(present) {
            let index = usize::from(member);
            let reads = work.get(index).map_or(0, |work| work.reads);
            let reads = reads - before.get(index).copied().unwrap_or(0);
            let has_failed = recovery.failed.iter().any(|failed| failed.member == MemberId(member));
            let is_readable = self.plan.is_undamaged() && !has_failed;
            let bound = heads + slots_read * if is_readable { 1 } else { 1 + rows };
            self.counters.peak("most reads of a mount on a member", reads);
            // It begins again without each member that fails.
            let begun = 1 + u64::try_from(recovery.failed.len() + left).unwrap_or(0);
            if begun == 1 && self.plan.is_undamaged() && !recovery.scanned_all {
                self.counters
                    .peak("most reads of a mount, percent of its bound", reads * 100 / bound);
            }
            let percent = if begun > 1 { 100 } else { READS_PERCENT };
            if reads * 100 > bound * begun * percent && self.bad == 0 {
                return broken(format!(
                    "a mount reads {reads} times, {READS_PERCENT} % of {bound} are enough"
                ));
            }
        }
        self.counters.add("mounts", 1);
        self.counters.add("mount: scanned all slots", u64::from(recovery.scanned_all));
        self.counters.add("mount: stripes kept", recovery.kept);
        self.counters.add("mount: stripes completed", recovery.completed);
        self.counters.add("mount: slots voided", recovery.voided);
        self.counters.add("mount: damage seen", recovery.damaged);
        self.counters
            .add("mount: members left out", u64::try_from(recovery.failed.len()).unwrap_or(0));
        if self.stopped && present == self.everybody() && self.bad == 0 {
            self.counters.add("mounts after a stop", 1);
            // The head that says so lies above its own watermark.
            if !recovery.clean || recovery.voided > 0 || recovery.kept > 1 {
                return broken(format!("after an orderly stop: {recovery:?}"));
            }
        }
        self.stopped = false;
        Ok(())
    }

    /// What a finished mount shows, and what becomes of the stripes that were in flight.
    fn look_at_mounted(&mut self, writer: &Writer) -> Verdict {
        let present = bits_of(writer.membership().present());
        let readable = if self.random.percent(50) { present } else { self.everybody() };
        let readable = self.with_superblock(readable & (present | !self.bad));
        let reader = match self.reader(readable) {
            Ok(reader) => reader,
            Err(error) => return broken(format!("a reader cannot open what is mounted: {error}")),
        };
        let epoch = writer.acknowledged();
        let (geometry, window) = (self.plan.geometry, u64::from(self.plan.window));
        let given_up = writer.superblock().given_up_before;
        if !(self.truth.given_up..=self.truth.giving_up).contains(&given_up) {
            let known = self.truth.given_up..=self.truth.giving_up;
            return broken(format!("given up before {given_up}, by what is known {known:?}"));
        }
        self.truth.given_up = given_up;
        let tail = (epoch.sequence + 1 + window).saturating_sub(geometry.slots);
        let tail = tail.max(geometry.first_sequence()).max(given_up);
        let expected = Some(volume::Span { tail, acknowledged: epoch });
        // Where a bad member is needed for a quorum, a reader may see no quorum of the new epoch.
        let reader = if reader.span() != expected && !self.mounts_without_bad() {
            self.counters.add("excused: a bad member is needed to see the epoch", 1);
            let devices = self.disks.readers(readable);
            let reader = writer.reader(devices);
            self.unlocked(reader.map_err(|error| Violation(error.to_string()))?)
        } else {
            reader
        };
        if reader.span() != expected || writer.tail() > tail + 1 {
            let (span, own) = (reader.span(), writer.tail());
            return broken(format!("{span:?} is shown, {expected:?} mounted, tail {own}"));
        }
        if epoch <= self.truth.acknowledged {
            let before = self.truth.acknowledged;
            return broken(format!("the epoch begins at {epoch}, acknowledged was {before}"));
        }
        self.note_stripe(epoch);
        self.note(u64::from(writer.epoch().get()));
        self.truth.forget_below(tail);
        // The watermark that the mount found may be as old as the last epoch.
        for member in numbers(self.everybody() & !(present & self.truth.deciders)) {
            self.truth.doubt(member, self.settled_below);
        }
        self.truth.take_part(present, epoch.sequence);
        let scene = self.scene(readable);
        let mut look =
            Look::new(&mut self.truth, (&reader, &self.disks), scene, &mut self.counters);
        look.read().map_err(at("after a mount"))?;
        look.verify().map_err(at("after a mount"))?;
        look.settle(present);
        self.acknowledge(epoch);
        self.truth.pending = None;
        (self.truth.epoch_unseen, self.truth.deciders) = (false, u32::MAX);
        self.truth.joined = present;
        self.troubled = 0;
        self.settled_below = epoch.sequence;
        Ok(())
    }

    /// How each disk comes through the crash: all by a kill, or each in its own way.
    pub(crate) fn choose_crashes(&mut self) -> Vec<Crash> {
        let kind = self.random.below(6);
        let crashes = (0..self.plan.members()).map(|_| {
            let seed = self.random.next();
            let kind = if kind == 5 { 1 + self.random.below(4) } else { kind };
            match kind {
                0 => Crash::Kill,
                1 => Crash::LoseAll,
                2 => Crash::Rows { seed },
                3 => Crash::Writes { seed },
                _ => Crash::Sectors { seed },
            }
        });
        let crashes: Vec<Crash> = crashes.collect();
        self.say(|| format!("the next crash will be {crashes:?}"));
        self.counters.add(if kind == 0 { "crashes by kill" } else { "crashes by power cut" }, 1);
        crashes
    }
}

/// An opener that no other one is like. Of those who had the volume before it knows that they are
/// dead, as on one machine, or nothing, as after a boot or from another machine.
pub(crate) fn opener<'a>(random: &mut Random, clock: &'a dyn Sleep) -> Opener<'a> {
    let id = u128::from(random.next()) << 64 | u128::from(random.next());
    // Others than the usual one, too; as long as on a hard disk only the waits would be.
    let interval_ms = if random.percent(80) { INTERVAL_MS } else { 4 * INTERVAL_MS };
    let opener = Opener { interval_ms, id: id.to_le_bytes(), ..Opener::alone(clock) };
    if random.percent(60) { opener } else { Opener { is_gone: &|_| false, ..opener } }
}

/// Too few members, as the mount sees it.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Quorum { .. } | Error::TooFewLeft { .. })
}

/// Says when it was seen.
pub(crate) fn at(when: &'static str) -> impl Fn(Violation) -> Violation {
    move |Violation(what)| Violation(format!("{when}: {what}"))
}

/// Members as bits.
pub(crate) fn bits(members: impl Iterator<Item = u8>) -> u32 {
    members.fold(0, |bits, member| bits | 1 << member)
}

/// The same of members by their type.
pub(crate) fn bits_of(members: impl Iterator<Item = MemberId>) -> u32 {
    bits(members.map(MemberId::get))
}

/// The members that bits stand for.
pub(crate) fn numbers(bits: u32) -> impl Iterator<Item = u8> {
    (0..32).filter(move |member| bits & (1 << member) != 0)
}

fn some_of(members: u8, count: u8, random: &mut Random) -> u32 {
    let mut chosen = 0_u32;
    while chosen.count_ones() < u32::from(count) {
        chosen |= 1 << random.below(u64::from(members));
    }
    chosen
}

/// Each of the bits with even chance.
fn some_bits(of: u32, random: &mut Random) -> u32 {
    let [low, ..] = random.next().to_le_bytes();
    of & u32::from(low) & of
}
