//! A power cut in all its outcomes: every subset of what was in flight reaches the disks, and the
//! mount behind it may crash at every one of its writes.

use device::{Crash, Device, Fault, MUTATIONS, Modelled, Rule};
use format::head::{HEAD_BYTES, Kind, StripeId};
use units::EachSequence;
use volume::Reader;
use writer::{Opener, mount};

use crate::ring::{Ring, boxed};

/// One row of one member as a stripe in flight would leave it.
type Row = (usize, u64, Vec<u8>);

fn bytes_of(disk: &Modelled, offset: u64) -> Vec<u8> {
    let mut row = vec![0; HEAD_BYTES];
    Device::read_at(disk, offset, &mut row).unwrap();
    row
}

/// The rows that differ between what is durable and what was written, in order.
fn in_flight(durable: &[Modelled], written: &[Modelled]) -> Vec<Row> {
    let rows = |(member, (before, after)): (usize, (&Modelled, &Modelled))| {
        let offsets = (0..Device::size_bytes(before)).step_by(HEAD_BYTES);
        let changed = offsets.filter_map(|offset| {
            let row = bytes_of(after, offset);
            (row != bytes_of(before, offset)).then_some((member, offset, row))
        });
        changed.collect::<Vec<_>>()
    };
    durable.iter().zip(written).enumerate().flat_map(rows).collect()
}

/// The disks when of the rows those have arrived whose bit is set.
fn image(durable: &[Modelled], rows: &[Row], arrived: u32) -> Vec<Modelled> {
    let mut disks: Vec<Modelled> = durable.iter().map(Modelled::snapshot).collect();
    for (number, (member, offset, row)) in rows.iter().enumerate() {
        if arrived & (1 << number) != 0 {
            disks[*member].write_at(*offset, row).unwrap();
        }
    }
    for disk in &mut disks {
        disk.flush().unwrap();
    }
    disks
}

/// The power fails while a stripe of one body row is in flight, behind some that are acknowledged.
struct Cut {
    ring: Ring,
    acknowledged: StripeId,
    /// The disks, of what is in flight nothing.
    durable: Vec<Modelled>,
    rows: Vec<Row>,
}

impl Cut {
    fn of(data_columns: u8, parity_columns: u8) -> Self {
        let mut ring = Ring::new(data_columns, parity_columns);
        let mut writer = ring.mount();
        ring.append(&mut writer, 40).unwrap();
        writer.drain(&ring.timeline).unwrap();
        let acknowledged = writer.acknowledged();
        ring.append_rows(&mut writer, 1).unwrap();
        let crashed = |how| ring.disks.iter().map(|disk| disk.crash(how)).collect::<Vec<_>>();
        let (durable, written) = (crashed(Crash::LoseAll), crashed(Crash::Kill));
        drop(writer);
        let rows = in_flight(&durable, &written);
        Self { ring, acknowledged, durable, rows }
    }
}

/// Every stripe that is shown has the bytes that were appended under its number.
fn shows_only_what_was_written(ring: &Ring, reader: &Reader) {
    let span = reader.span().unwrap();
    let mut buffer = vec![0; reader.piece_bytes()];
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        for column in 0..reader.geometry().data_columns {
            let Ok(slot) = reader.slot(sequence, column, &mut buffer) else { continue };
            for piece in slot.stripes {
                if piece.head.stripe.kind != Kind::Index {
                    continue;
                }
                let id = piece.head.stripe.stripe;
                let known = ring.appended.iter().find(|(appended, ..)| *appended == id);
                let &(_, _, mark) = known.expect("nothing is shown that was never appended");
                let body = Reader::body(&piece.head, &buffer);
                assert!(piece.bad_rows.is_empty(), "{id}");
                assert!(body.iter().all(|&byte| byte == mark ^ column), "{id}.{column}");
            }
        }
    }
}

fn mounts_and_holds(ring: &Ring, disks: &[Modelled], acknowledged: StripeId) {
    let (writer, _) = mount(boxed(disks), &Opener::alone(&ring.timeline)).unwrap();
    drop(writer);
    ring.check(disks, acknowledged);
    let readers = disks.iter().map(|disk| Box::new(disk.clone()) as Box<dyn device::ReadAt>);
    shows_only_what_was_written(ring, &Reader::open(readers.collect()).unwrap());
}

/// Writes that a mount of these disks does on the member that does most.
fn writes_of_a_mount(ring: &Ring, disks: &[Modelled]) -> u64 {
    let disks: Vec<Modelled> = disks.iter().map(Modelled::snapshot).collect();
    let before: Vec<u64> = disks.iter().map(|disk| disk.work().mutations()).collect();
    drop(mount(boxed(&disks), &Opener::alone(&ring.timeline)).unwrap());
    let after = disks.iter().map(|disk| disk.work().mutations());
    after.zip(before).map(|(after, before)| after - before).max().unwrap()
}

#[test]
fn every_outcome_of_a_power_cut_keeps_what_was_acknowledged() {
    let Cut { ring, acknowledged, durable, rows } = Cut::of(3, 2);
    assert_eq!(rows.len(), 10, "a head and a body row on each of five members");
    for arrived in 0..1 << rows.len() {
        mounts_and_holds(&ring, &image(&durable, &rows, arrived), acknowledged);
    }
}

#[test]
fn a_mount_may_crash_at_every_write_of_every_outcome() {
    let Cut { ring, acknowledged, durable, rows } = Cut::of(2, 1);
    assert_eq!(rows.len(), 6);
    for arrived in 0..1 << rows.len() {
        let start = image(&durable, &rows, arrived);
        for after in 0..writes_of_a_mount(&ring, &start) {
            for crash in [Crash::Kill, Crash::LoseAll] {
                let disks: Vec<Modelled> = start.iter().map(Modelled::snapshot).collect();
                for disk in &disks {
                    disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
                }
                assert!(
                    mount(boxed(&disks), &Opener::alone(&ring.timeline)).is_err(),
                    "no disk is left"
                );
                let disks: Vec<Modelled> = disks.iter().map(|disk| disk.crash(crash)).collect();
                disks.iter().for_each(Modelled::clear_rules);
                mounts_and_holds(&ring, &disks, acknowledged);
            }
        }
    }
}
