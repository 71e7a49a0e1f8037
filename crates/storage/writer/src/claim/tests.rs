//! Two openers of one volume, on two machines, step by step in every order.

use core::cell::Cell;

use device::{Device, Modelled, Timeline, Timing};
use format::claim::{CLAIM_OFFSET, Claim, Claimant, INTERVAL_MS};
use format::geometry::PIECE_BYTES_MIN;
use format::head::{HeadKey, VolumeId};
use format::superblock::MemberEntry;
use units::{Clock, MemberId, Random, Sleep, Timestamp};
use volume::{CreateOptions, Error, Identity, create};

use super::{Claiming, Next, Opener};
use crate::member_writer::MemberWriter;
use crate::member_writers::{Failed, MemberWriters};

const KEY: HeadKey = HeadKey([8; 32]);
const MEMBERS: u8 = 2;
const SIZE: u64 = (4 << 20) + 20 * 16384;

struct World {
    timeline: Timeline,
    disks: Vec<Modelled>,
    /// Each opener reaches the disks through a port of its own.
    ports: Cell<u32>,
}

impl World {
    fn new() -> Self {
        let timeline = Timeline::new(Timestamp(1_700_000_000_000_000_000));
        let disk = |seed| Modelled::new(SIZE, Timing::instant(), &timeline, seed);
        let disks: Vec<Modelled> = (0..u64::from(MEMBERS)).map(disk).collect();
        let options = CreateOptions { piece_bytes: PIECE_BYTES_MIN, ..CreateOptions::default() };
        let entry = |member: u8| MemberEntry::new([member + 1; 16], String::new());
        let identity = Identity {
            volume_id: VolumeId([7; 16]),
            head_key: KEY,
            members: (0..MEMBERS).map(entry).collect(),
            spares: Vec::new(),
            created: Timestamp(0),
        };
        create(&mut boxed(&disks), &options, &identity).unwrap();
        Self { timeline, disks, ports: Cell::new(0) }
    }

    fn writers(&self) -> MemberWriters {
        let port = self.ports.get() + 1;
        self.ports.set(port);
        let disks: Vec<Modelled> = self.disks.iter().map(|disk| disk.at_port(port)).collect();
        let opened = boxed(&disks).into_iter().map(|device| MemberWriter::open(device).unwrap());
        MemberWriters::assemble(opened.collect()).unwrap()
    }

    /// An opener on a machine of its own: it knows nothing of the others' processes.
    fn opener(&self, number: u8) -> Opener<'_> {
        let host = format!("host{number}");
        let claimant = Claimant { host, boot_id: [number; 16], ..Claimant::default() };
        Opener {
            clock: &self.timeline,
            interval_ms: INTERVAL_MS,
            id: [number; 16],
            claimant,
            is_gone: &|_| false,
        }
    }

    /// A writer opened the volume, and crashed.
    fn abandon(&self) {
        let mut writers = self.writers();
        assert!(Claiming::run(&self.opener(9), &mut writers).unwrap().is_empty());
    }

    fn claim(&self, member: usize) -> Claim {
        let mut row = [0; 4096];
        Device::read_at(&self.disks[member], CLAIM_OFFSET, &mut row).unwrap();
        Claim::decode(&row, &KEY).unwrap()
    }
}

fn boxed(disks: &[Modelled]) -> Vec<Box<dyn Device>> {
    let boxed = |disk: &Modelled| -> Box<dyn Device> { Box::new(disk.clone()) };
    disks.iter().map(boxed).collect()
}

/// One of the two.
struct Side<'a> {
    writers: MemberWriters,
    claiming: Claiming<'a>,
    due_ns: i64,
    state: State,
    /// Once it has the volume, it looks after its claim as a recorder does.
    is_awake: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Opening,
    Refused,
    Writing,
    Stopped,
}

impl<'a> Side<'a> {
    fn new(world: &World, opener: &'a Opener<'a>, is_awake: bool) -> Self {
        let (writers, claiming) = (world.writers(), Claiming::new(opener));
        Self { writers, claiming, due_ns: i64::MIN, state: State::Opening, is_awake }
    }

    fn step(&mut self) {
        self.state = match self.claiming.step(&mut self.writers) {
            Ok(Next::Now) => return,
            Ok(Next::At(due_ns)) => return self.due_ns = due_ns,
            Ok(Next::Taken) => State::Writing,
            Err(Failed {
                error: Error::Claimed { .. } | Error::ClaimedMeanwhile { .. }, ..
            }) => State::Refused,
            Err(failed) => panic!("{failed:?}"),
        };
    }

    /// Time goes on: a writer compares and renews.
    fn poll(&mut self, clock: &Timeline) {
        if self.state != State::Writing || !self.is_awake {
            return;
        }
        for _ in 0..8 {
            match self.writers.poll(None, 1, clock) {
                Ok(()) => {}
                Err(Failed { error: Error::TakenOver { .. }, .. }) => {
                    return self.state = State::Stopped;
                }
                Err(failed) => panic!("{failed:?}"),
            }
        }
    }

    fn may_write(&self, now_ns: i64) -> bool {
        self.state == State::Writing && self.writers.iter().any(|writer| writer.may_write(now_ns))
    }
}

/// What two openers came to: each takes its next step when `choose` says so, after a pause of so
/// many nanoseconds. Checked all the way: of two one may write at most.
fn race(world: &World, is_awake: bool, mut choose: impl FnMut() -> (usize, i64)) -> [State; 2] {
    let openers = [world.opener(1), world.opener(2)];
    let mut sides = openers.each_ref().map(|opener| Side::new(world, opener, is_awake));
    let clock = &world.timeline;
    while sides.iter().any(|side| side.state == State::Opening) {
        let (first, pause_ns) = choose();
        let is_opening = |side: &usize| sides[*side].state == State::Opening;
        let number = [first, 1 - first].into_iter().find(is_opening).unwrap();
        let until_ns = sides[number].due_ns.max(clock.boottime_ns()) + pause_ns;
        while clock.boottime_ns() < until_ns {
            clock.sleep_until(until_ns.min(clock.boottime_ns() + 100_000_000));
            for side in &mut sides {
                side.poll(clock);
            }
        }
        sides[number].step();
        let now_ns = clock.boottime_ns();
        let may_write = sides.iter().filter(|side| side.may_write(now_ns)).count();
        assert!(may_write <= 1, "both may write: {:?}", sides.each_ref().map(|side| side.state));
    }
    sides.each_ref().map(|side| side.state)
}

#[test]
fn of_two_openers_at_once_at_most_one_comes_to_write_whatever_the_order() {
    // Look, claim, look again: three steps each; and a pause before any of them, long enough for
    // the other one to do all of its own.
    let (mut single, mut orders) = (0, 0);
    for order in 0..4_u32.pow(6) {
        for is_awake in [true, false] {
            let (world, mut left) = (World::new(), order);
            let states = race(&world, is_awake, || {
                let choice = left % 4;
                left /= 4;
                (usize::from(choice & 1 != 0), if choice & 2 == 0 { 0 } else { 700_000_000 })
            });
            orders += 1;
            single += u32::from(states.contains(&State::Writing));
        }
    }
    println!("{single} of {orders} orders end with a writer");
    assert!(single > orders / 2, "{single} of {orders}");
}

#[test]
fn who_comes_after_a_crash_elsewhere_waits_and_is_alone() {
    let mut random = Random::new(1);
    let mut single = 0;
    for _ in 0..600 {
        let world = World::new();
        world.abandon();
        let is_awake = random.below(2) == 0;
        let states = race(&world, is_awake, || {
            let pause_ns =
                [0, 0, 0, 150_000_000, 3_000_000_000][usize::try_from(random.below(5)).unwrap()];
            (usize::try_from(random.below(2)).unwrap(), pause_ns)
        });
        single += u32::from(states.contains(&State::Writing));
    }
    assert!(single > 200, "{single}");
}

#[test]
fn one_after_the_other_the_first_has_it_and_the_second_hears_who() {
    let world = World::new();
    let first = world.opener(1);
    let mut writers = world.writers();
    assert!(Claiming::run(&first, &mut writers).unwrap().is_empty());
    let second = world.opener(2);
    let (mut others, mut claiming) = (world.writers(), Claiming::new(&second));
    let before_ns = world.timeline.now_ns();
    let refused = loop {
        match claiming.step(&mut others) {
            Ok(Next::Now) => {}
            Ok(Next::At(until_ns)) => {
                while world.timeline.now_ns() < until_ns {
                    world.timeline.advance_by(50_000_000);
                    writers.poll(None, 1, &world.timeline).unwrap();
                }
            }
            Ok(Next::Taken) => panic!("two have it"),
            Err(failed) => break failed.error,
        }
    };
    assert!(world.timeline.now_ns() - before_ns <= 1_000_000_000, "the claim has moved");
    assert!(refused.to_string().starts_with("process 0 on host1 (since 2023-"), "{refused}");
    assert_eq!(world.claim(0).id, first.id);
}

#[test]
fn after_an_orderly_end_and_after_a_death_that_is_known_nobody_waits() {
    let world = World::new();
    let mut writers = world.writers();
    let opener = world.opener(1);
    for _ in 0..2 {
        let before_ns = world.timeline.now_ns();
        Claiming::run(&opener, &mut writers).unwrap();
        assert!(world.timeline.now_ns() - before_ns <= format::claim::race_ns(INTERVAL_MS));
        writers.give_up(&world.timeline).unwrap();
        assert!(world.claim(0).is_given_up && world.claim(1).is_given_up);
        writers = world.writers();
    }
    world.abandon();
    let before_ns = world.timeline.now_ns();
    let dead = Opener { is_gone: &|_| true, ..world.opener(2) };
    Claiming::run(&dead, &mut world.writers()).unwrap();
    assert!(world.timeline.now_ns() - before_ns <= format::claim::race_ns(INTERVAL_MS));
    assert_eq!(world.claim(1).turn, 4, "each opening has a turn of its own");
}

#[test]
fn the_waits_after_a_crash_elsewhere_stay_below_five_seconds_for_any_number_of_members() {
    let world = World::new();
    world.abandon();
    let before_ns = world.timeline.now_ns();
    Claiming::run(&world.opener(1), &mut world.writers()).unwrap();
    let waited_ns = world.timeline.now_ns() - before_ns;
    assert!((4_000_000_000..5_000_000_000).contains(&waited_ns), "{waited_ns}");
}

#[test]
fn a_damaged_claim_is_waited_for_and_then_passed_over() {
    let world = World::new();
    world.abandon();
    world.disks[0].damage(CLAIM_OFFSET, |row| row[100] ^= 1);
    Claiming::run(&world.opener(1), &mut world.writers()).unwrap();
    assert_eq!(world.claim(0).id, [1; 16]);
}

#[test]
fn a_member_that_does_not_take_the_claim_is_left_out() {
    use device::{Fault, Operation, Rule};
    let world = World::new();
    world.disks[1].add_rule(Rule::new(Fault::Lost, &[Operation::Write]));
    let mut writers = world.writers();
    let failed = Claiming::run(&world.opener(1), &mut writers).unwrap();
    assert!(
        matches!(failed[..], [(MemberId(1), Error::NotTaken { member: MemberId(1), .. })]),
        "{failed:?}"
    );
    assert!(writers.get(MemberId(0)).is_some() && writers.get(MemberId(1)).is_none());
}
