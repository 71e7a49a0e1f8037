//! A member fails or stalls while a writer is at work: the writer goes on without it, and whatever
//! it acknowledged is there when that member is gone for good, and when it comes back.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "a test may stop at once"
)]

use device::{Crash, Device, Fault, MUTATIONS, Modelled, Pool, ReadAt, Rule, Timeline, Timing};
use format::geometry::PIECE_BYTES_MIN;
use format::head::{HEAD_BYTES, HeadKey, Kind, StripeId, VolumeId};
use format::superblock::MemberEntry;
use units::Timestamp;
use volume::{CreateOptions, Error, Filled, Identity, Reader, Writer, create, mount};

const SIZE: u64 = 8 << 20;

struct Ring {
    timeline: Timeline,
    disks: Vec<Modelled>,
    pool: Pool,
    data_columns: u8,
    /// Stripes appended, and the byte that fills them.
    appended: Vec<(StripeId, u8)>,
}

impl Ring {
    fn new(data_columns: u8, parity_columns: u8) -> Self {
        let timeline = Timeline::new(Timestamp(1));
        let members = data_columns + parity_columns;
        let disk = |seed: u8| Modelled::new(SIZE, Timing::instant(), &timeline, u64::from(seed));
        let disks: Vec<Modelled> = (0..members).map(disk).collect();
        let entry = |number: u8| MemberEntry::new([number; 16], String::new());
        let identity = Identity {
            volume_id: VolumeId([1; 16]),
            head_key: HeadKey([2; 32]),
            members: (0..members).map(entry).collect(),
            created: Timestamp(0),
        };
        let options = CreateOptions { piece_bytes: PIECE_BYTES_MIN, parity_columns };
        create(&mut boxed(&disks), &options, &identity).unwrap();
        let pool = Pool::new(256, usize::try_from(PIECE_BYTES_MIN).unwrap()).unwrap();
        Self { timeline, disks, pool, data_columns, appended: Vec::new() }
    }

    fn mount(&self) -> Writer {
        mount(boxed(&self.disks), &self.timeline).unwrap().0
    }

    fn append(&mut self, writer: &mut Writer, count: u8) -> Result<(), Error> {
        for mark in 0..count {
            let columns = (0..self.data_columns).map(|column| {
                let mut buffer = self.pool.take().unwrap();
                buffer[HEAD_BYTES..].fill(mark ^ column);
                buffer
            });
            let rows = writer.plan(3).rows;
            let filled = Filled::without_packets(columns.collect(), Kind::Index, rows);
            let stripe = writer.append(filled, &self.timeline)?.stripe;
            self.appended.push((stripe, mark));
        }
        Ok(())
    }

    /// Everything up to `acknowledged` comes back from `disks`.
    fn check(&self, disks: &[Modelled], acknowledged: StripeId) {
        let readers = disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
        let reader = Reader::open(readers.collect()).unwrap();
        let mut buffer = vec![0; reader.piece_bytes()];
        for &(stripe, mark) in self.appended.iter().filter(|(stripe, _)| *stripe <= acknowledged) {
            for column in 0..self.data_columns {
                let slot = reader.slot(stripe.sequence, column, &mut buffer).unwrap();
                let piece = &slot.stripes[usize::from(stripe.sub)];
                assert_eq!(piece.bad_rows, vec![], "{stripe}");
                let body = Reader::body(&piece.head, &buffer);
                assert!(body.iter().all(|&byte| byte == mark ^ column), "{stripe}.{column}");
            }
        }
    }
}

fn boxed(disks: &[Modelled]) -> Vec<Box<dyn Device>> {
    disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn Device>).collect()
}

/// What becomes of a member.
type Misfortune = fn(&Modelled);

const MISFORTUNES: [(&str, Misfortune); 2] = [
    ("fails", |disk| disk.add_rule(Rule::new(Fault::Error, MUTATIONS))),
    ("stalls", |disk| disk.stall(3_600_000_000_000)),
];

#[test]
fn a_writer_goes_on_without_a_member_and_loses_nothing() {
    for (what, strike) in MISFORTUNES {
        for (data, parity) in [(1, 1), (2, 1), (4, 2)] {
            let mut ring = Ring::new(data, parity);
            let mut writer = ring.mount();
            let epoch = writer.epoch();
            ring.append(&mut writer, 20).unwrap();
            strike(&ring.disks[1]);
            ring.append(&mut writer, 40).unwrap();
            writer.drain(&ring.timeline).unwrap();
            let expelled: Vec<u8> = writer.expelled().iter().map(|gone| gone.member).collect();
            assert_eq!(expelled, [1], "{what}, {data}+{parity}");
            assert!(writer.epoch() > epoch);
            let acknowledged = writer.acknowledged();
            assert!(acknowledged >= ring.appended.last().unwrap().0);

            // The power fails, and the member is gone for good.
            let crashed: Vec<Modelled> =
                ring.disks.iter().map(|disk| disk.crash(Crash::LoseAll)).collect();
            let mut left = crashed.clone();
            left.remove(1);
            let (writer, _) = mount(boxed(&left), &ring.timeline).unwrap();
            drop(writer);
            ring.check(&left, acknowledged);

            // It comes back as it was: stale, and no harm.
            let (writer, _) = mount(boxed(&crashed), &ring.timeline).unwrap();
            let entry = &writer.superblock().members[1];
            assert!(entry.stale_from < entry.clean_from && entry.clean_from < u64::MAX);
            drop(writer);
            ring.check(&crashed, acknowledged);
        }
    }
}

#[test]
fn more_failures_than_parity_stop_the_writer() {
    let mut ring = Ring::new(3, 1);
    let mut writer = ring.mount();
    ring.append(&mut writer, 10).unwrap();
    for disk in &ring.disks[..2] {
        disk.add_rule(Rule::new(Fault::Error, MUTATIONS));
    }
    let result = ring.append(&mut writer, 10).and_then(|()| writer.drain(&ring.timeline));
    assert!(result.is_err());
    assert!(matches!(writer.drain(&ring.timeline), Err(Error::Stopped)), "and it stays so");
}
