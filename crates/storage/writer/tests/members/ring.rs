//! A volume to try members on.

use device::{Device, Modelled, Pool, ReadAt, Timeline, Timing, ZoneProfile};
use format::geometry::PIECE_BYTES_MIN;
use format::head::{HEAD_BYTES, HeadKey, Kind, StripeId, VolumeId};
use format::superblock::{MemberEntry, TimeKnown};
use units::{MemberId, Timestamp};
use volume::{CreateOptions, Error, Identity, Reader, RowsWanted, create};
use writer::{Filled, Opener, Writer, mount, mount_without};

const SIZE: u64 = 8 << 20;
/// More rows than a piece has.
const ROWS_MAX: u16 = 512;

/// A volume on modelled disks, and what was appended to it.
pub(crate) struct Ring {
    pub(crate) timeline: Timeline,
    pub(crate) disks: Vec<Modelled>,
    pool: Pool,
    /// Stripes appended, how many columns of data each has, and the byte that fills them.
    pub(crate) appended: Vec<(StripeId, u8, u8)>,
    mark: u8,
}

impl Ring {
    pub(crate) fn new(data_columns: u8, parity_columns: u8) -> Self {
        Self::without(data_columns, parity_columns, &[])
    }

    /// The same with members missing from the start; their disks are blank.
    pub(crate) fn without(data_columns: u8, parity_columns: u8, missing: &[u8]) -> Self {
        Self::made((data_columns, parity_columns), missing, 1)
    }

    /// Another volume.
    pub(crate) fn with_id(data_columns: u8, parity_columns: u8, id: u8) -> Self {
        Self::made((data_columns, parity_columns), &[], id)
    }

    /// The same on disks with moving parts.
    pub(crate) fn on_hard_disks(data_columns: u8, parity_columns: u8) -> Self {
        let timeline = Timeline::new(Timestamp(1));
        let disk = |seed| {
            let profile = ZoneProfile::level(SIZE, 200e6);
            Modelled::new(SIZE, Timing::hard_disk(profile), &timeline, u64::from(seed))
        };
        let disks = (0..data_columns + parity_columns).map(disk).collect();
        Self::on(timeline, disks, (parity_columns, &[], 1))
    }

    fn made((data_columns, parity_columns): (u8, u8), missing: &[u8], id: u8) -> Self {
        let timeline = Timeline::new(Timestamp(1));
        let members = data_columns + parity_columns;
        let disks: Vec<Modelled> = (0..members).map(|seed| disk(&timeline, seed)).collect();
        Self::on(timeline, disks, (parity_columns, missing, id))
    }

    fn on(
        timeline: Timeline,
        disks: Vec<Modelled>,
        (parity_columns, missing, id): (u8, &[u8], u8),
    ) -> Self {
        let entry = |number: u8| {
            if missing.contains(&number) {
                MemberEntry::vacant()
            } else {
                MemberEntry::new([number + 1; 16], String::new())
            }
        };
        let identity = Identity {
            volume_id: VolumeId([id; 16]),
            head_key: HeadKey([2; 32]),
            members: (0..).take(disks.len()).map(entry).collect(),
            spares: Vec::new(),
            created: Timestamp(0),
        };
        let time = TimeKnown::by(&timeline);
        let options = CreateOptions {
            piece_bytes: PIECE_BYTES_MIN,
            parity_columns,
            time,
            ..CreateOptions::default()
        };
        let there = (0..).zip(&disks).filter(|(number, _)| !missing.contains(number));
        let there: Vec<Modelled> = there.map(|(_, disk)| disk.clone()).collect();
        create(&mut boxed(&there), &options, &identity).unwrap();
        let pool = Pool::new(256, usize::try_from(PIECE_BYTES_MIN).unwrap()).unwrap();
        Self { timeline, disks, pool, appended: Vec::new(), mark: 0 }
    }

    pub(crate) fn mount(&self) -> Writer {
        mount(boxed(&self.disks), &Opener::alone(&self.timeline)).unwrap().0
    }

    /// Mounts what is left when the operator says which members are gone for good.
    pub(crate) fn mount_without(&self, disks: &[Modelled], gone: &[MemberId]) -> Writer {
        mount_without(boxed(disks), gone, &Opener::alone(&self.timeline)).unwrap().0
    }

    pub(crate) fn reader(&self) -> Reader {
        reader_on(&self.disks)
    }

    /// Appends stripes of three rows or of the rest of their slot.
    pub(crate) fn append(&mut self, writer: &mut Writer, count: u8) -> Result<(), Error> {
        (0..count).try_for_each(|_| self.append_rows(writer, 3))
    }

    /// Appends one stripe of so many rows or of the rest of its slot.
    pub(crate) fn append_rows(&mut self, writer: &mut Writer, rows: u16) -> Result<(), Error> {
        let data_columns = writer.geometry().data_columns;
        self.mark = self.mark.wrapping_add(1);
        let columns = (0..data_columns).map(|column| {
            let mut buffer = self.pool.take().unwrap();
            buffer[HEAD_BYTES..].fill(self.mark ^ column);
            buffer
        });
        let rows = writer.plan(rows).rows;
        let filled = Filled::without_packets(columns.collect(), Kind::Index, rows);
        let stripe = writer.append(filled, &self.timeline)?.stripe;
        self.appended.push((stripe, data_columns, self.mark));
        Ok(())
    }

    /// Everything up to `acknowledged` comes back from `disks`.
    pub(crate) fn check(&self, disks: &[Modelled], acknowledged: StripeId) {
        let reader = reader_on(disks);
        let tail = reader.span().unwrap().tail;
        let mut buffer = vec![0; reader.piece_bytes()];
        let held = |stripe: &StripeId| stripe.sequence >= tail && *stripe <= acknowledged;
        assert!(self.appended.iter().any(|(stripe, ..)| held(stripe)), "there is something");
        for &(stripe, columns, mark) in self.appended.iter().filter(|(stripe, ..)| held(stripe)) {
            for column in 0..columns {
                let slot = reader.slot(stripe.sequence, column, &mut buffer).unwrap();
                let piece = &slot.stripes[usize::from(stripe.sub)];
                assert_eq!(piece.bad_rows, Vec::<u16>::new(), "{stripe}");
                let body = Reader::body(&piece.head, &buffer);
                assert!(body.iter().all(|&byte| byte == mark ^ column), "{stripe}.{column}");
            }
        }
    }

    /// Rows of all that the ring holds come from where their stripe has them: of how many pieces
    /// rows were given, and of how many not.
    pub(crate) fn check_rows(&self, disks: &[Modelled]) -> (usize, usize) {
        let reader = reader_on(disks);
        let span = reader.span().unwrap();
        let held =
            |it: &&(StripeId, u8, u8)| it.0.sequence >= span.tail && it.0 <= span.acknowledged;
        let pieces = self.appended.iter().filter(held).flat_map(|&(stripe, columns, mark)| {
            let rows = Vec::from([0..1, 2..ROWS_MAX]);
            let wanted = move |column| RowsWanted { stripe, column, rows: rows.clone() };
            (0..columns).map(move |column| (wanted(column), mark ^ column))
        });
        let (wanted, marks): (Vec<_>, Vec<_>) = pieces.unzip();
        let read = reader.rows(&wanted);
        let mut given = 0;
        for ((wanted, mark), rows) in wanted.iter().zip(marks).zip(read) {
            let Some(rows) = rows else { continue };
            given += 1;
            assert_eq!(rows.head.stripe.stripe, wanted.stripe);
            assert_eq!(rows.head.piece.column, wanted.column, "{}", wanted.stripe);
            let mut bytes = rows.runs.iter().flat_map(|(_, bytes)| bytes);
            assert!(bytes.all(|&byte| byte == mark), "{}.{}", wanted.stripe, wanted.column);
        }
        (given, wanted.len() - given)
    }
}

pub(crate) fn disk(timeline: &Timeline, seed: u8) -> Modelled {
    Modelled::new(SIZE, Timing::instant(), timeline, u64::from(seed))
}

pub(crate) fn boxed(disks: &[Modelled]) -> Vec<Box<dyn Device>> {
    disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn Device>).collect()
}

fn reader_on(disks: &[Modelled]) -> Reader {
    let readers = disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn ReadAt>);
    Reader::open(readers.collect()).unwrap()
}
