//! What becomes of keys later: wrapped for others, destroyed, begun with.

use std::collections::BTreeMap;

use device::{Crash, Fault, MUTATIONS, Modelled, ReadAt, Rule};
use encryption::{Identities, Keyring, Recipients};
use format::key_row::{WrappedKey, key_row_offsets};
use format::superblock::Superblock;
use units::{Clock, Sleep};
use volume::{Error, Retention};
use writer::{Opener, Writer, mount};

use super::{OTHER, PUBLIC, Ring, SECRET, SIZE, boxed, reader_on, shown_to};

const OTHERS: &str = "age1cy0su9fwf3gf9mw868g5yut09p6nytfmmnktexz2ya5uqg9vl9sss4euqm";
const HOUR_NS: i64 = 3_600_000_000_000;

/// The keys of a volume that `secret` opens, wrapped for these.
fn rewrapped(writer: &Writer, secret: &str, recipients: &[String]) -> BTreeMap<u64, Vec<u8>> {
    let keyring =
        Keyring::new([1; 16], Some(Identities::parse(secret.as_bytes(), &|| None).unwrap()));
    let recipients = Recipients::parse(recipients).unwrap();
    writer.key_log().keys().for_each(|key| keyring.learn(key.id, &key.wrapped));
    let ids = writer.key_log().keys().map(|key| key.id);
    let wrap = |id| Some((id, recipients.wrap(&*keyring.key(id)?, [1; 16], id).unwrap()));
    ids.filter_map(wrap).collect()
}

/// A ring of which each hour has some stripes, stopped in order.
fn hours(ring: &mut Ring, count: usize) {
    let (mut writer, _) = ring.mount();
    for _ in 0..count {
        ring.append_some(&mut writer);
        ring.timeline.sleep_until(ring.timeline.boottime_ns() + HOUR_NS);
    }
    writer.close(&ring.timeline).unwrap();
}

/// Does something with a writer on copies of the disks that crash before each write and flush of
/// it; `check` sees what is left, and is told the last time that nothing was cut short.
fn crash_everywhere(
    ring: &Ring,
    change: &dyn Fn(&mut Writer) -> Result<(), Error>,
    check: &dyn Fn(&[Modelled], bool),
) {
    for after in 0.. {
        let disks: Vec<Modelled> = ring.disks.iter().map(Modelled::snapshot).collect();
        let (mut writer, _) = mount(boxed(&disks), &Opener::alone(&ring.timeline)).unwrap();
        for disk in &disks {
            disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
        }
        let is_done = change(&mut writer).is_ok() && writer.close(&ring.timeline).is_ok();
        for disk in &disks {
            disk.clear_rules();
        }
        for crash in [Crash::LoseAll, Crash::Sectors { seed: after }, Crash::Kill] {
            let left: Vec<Modelled> = disks.iter().map(|disk| disk.crash(crash)).collect();
            // As it lies there, and after the next mount.
            check(&left, is_done);
            let (writer, _) = mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap();
            writer.close(&ring.timeline).unwrap();
            check(&left, is_done);
        }
        if is_done {
            return;
        }
    }
}

/// Whether these bytes lie on a disk where keys do.
fn has_bytes(disks: &[Modelled], bytes: &[u8]) -> bool {
    let has = |disk: &Modelled| {
        key_row_offsets(0, SIZE).into_iter().any(|offset| {
            let mut rows = vec![0; 64 << 10];
            ReadAt::read_at(disk, offset, &mut rows).unwrap();
            rows.windows(bytes.len()).any(|part| part == bytes)
        })
    };
    disks.iter().any(has)
}

#[test]
fn who_is_added_reads_all_and_who_is_removed_nothing_wherever_it_crashes() {
    for (before, after) in [
        ([PUBLIC].as_slice(), [PUBLIC, OTHERS].as_slice()),
        (&[PUBLIC, OTHERS], &[OTHERS]),
        (&[PUBLIC], &[OTHERS]),
        (&[PUBLIC], &[PUBLIC]),
    ] {
        let [before, after] = [before, after].map(|texts| texts.iter().map(ToString::to_string));
        let (before, after): (Vec<String>, Vec<String>) = (before.collect(), after.collect());
        let mut ring = Ring::of((2, 1), &before);
        hours(&mut ring, 3);
        let all = shown_to(&ring.disks, SECRET);
        let old: Vec<Vec<u8>> =
            reader_on(&ring.disks).key_log().keys().map(|key| key.wrapped.clone()).collect();
        let change = |writer: &mut Writer| {
            let wrapped = rewrapped(writer, SECRET, &after);
            assert_eq!(wrapped.len(), 3);
            writer.set_recipients(&after, &wrapped, &ring.timeline)
        };
        crash_everywhere(&ring, &change, &|disks, is_done| {
            let [own, others] = [SECRET, OTHER].map(|secret| shown_to(disks, secret));
            assert!(own == all || others == all, "{own} and {others} of {all}");
            if is_done {
                let reads = |public: &str| if after.contains(&public.to_owned()) { all } else { 0 };
                assert_eq!((own, others), (reads(PUBLIC), reads(OTHERS)));
                assert_eq!(reader_on(disks).key_log().recipients(), after);
                assert!(old.iter().all(|wrapped| !has_bytes(disks, wrapped)), "old keys are gone");
            }
        });
    }
}

/// The first disk of a change that failed on all others, and was cut short on it, too.
fn cut_short_on_the_first(ring: &Ring, after: u64, recipients: &[String]) -> Modelled {
    let disks: Vec<Modelled> = ring.disks.iter().map(Modelled::snapshot).collect();
    let (mut writer, _) = mount(boxed(&disks), &Opener::alone(&ring.timeline)).unwrap();
    let wrapped = rewrapped(&writer, SECRET, recipients);
    for (number, disk) in disks.iter().enumerate() {
        let rule = Rule::new(Fault::Error, MUTATIONS);
        disk.add_rule(rule.after(if number == 0 { after } else { 0 }));
    }
    assert!(writer.set_recipients(recipients, &wrapped, &ring.timeline).is_err());
    drop(writer);
    let first = disks.first().unwrap();
    first.clear_rules();
    first.crash(Crash::Kill)
}

/// A mount that crashes before each of its writes and flushes; `check` sees what is left, and
/// whether a mount went through.
fn crash_in_mounts(ring: &Ring, check: &dyn Fn(&[Modelled], bool)) {
    for after in 0.. {
        let disks: Vec<Modelled> = ring.disks.iter().map(Modelled::snapshot).collect();
        for disk in &disks {
            disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
        }
        let mounted = mount(boxed(&disks), &Opener::alone(&ring.timeline));
        let is_done = mounted.and_then(|(writer, _)| writer.close(&ring.timeline)).is_ok();
        disks.iter().for_each(Modelled::clear_rules);
        let left: Vec<Modelled> = disks.iter().map(|disk| disk.crash(Crash::Kill)).collect();
        check(&left, is_done);
        let (writer, _) = mount(boxed(&left), &Opener::alone(&ring.timeline)).unwrap();
        writer.close(&ring.timeline).unwrap();
        check(&left, true);
        if is_done {
            return;
        }
    }
}

#[test]
fn a_member_that_alone_has_part_of_a_change_is_not_believed_when_another_was_made_without_it() {
    let both = [PUBLIC, OTHERS].map(String::from);
    let mut ring = Ring::new(2, 1);
    // So many that there is no room for all in their rows when they are wrapped for two.
    hours(&mut ring, 40);
    let rows = reader_on(&ring.disks).key_log().row_count();
    let mut most = 0;
    for after in [3, 9] {
        let returning = cut_short_on_the_first(&ring, after, &both);
        let alone = reader_on(core::slice::from_ref(&returning)).key_log();
        most = most.max(alone.row_count());
        let here: Vec<Modelled> = ring.disks.iter().skip(1).map(Modelled::snapshot).collect();
        let mut without = ring.with(here);
        let (mut writer, _) = mount(boxed(&without.disks), &Opener::alone(&ring.timeline)).unwrap();
        let only = [PUBLIC.to_owned()];
        let wrapped = rewrapped(&writer, SECRET, &only);
        writer.set_recipients(&only, &wrapped, &ring.timeline).unwrap();
        writer.close(&ring.timeline).unwrap();
        // Nor are keys lost that were made meanwhile.
        hours(&mut without, 1);
        let expected = reader_on(&without.disks).key_log();
        assert_eq!(expected.recipients(), only);
        let old: Vec<&WrappedKey> = alone
            .keys()
            .filter(|key| expected.keys().all(|it| it.wrapped != key.wrapped))
            .collect();
        let disks = core::iter::once(returning).chain(without.disks.iter().cloned());
        crash_in_mounts(&ring.with(disks.collect()), &|disks, is_done| {
            assert!(reader_on(disks).key_log() == expected, "after {after}");
            let is_there = || old.iter().any(|key| has_bytes(disks, &key.wrapped));
            assert!(!is_done || !is_there(), "after {after}");
        });
    }
    // How many depends on the length of what age puts in at random.
    assert!(most > rows, "{most} rows of {rows}: it has some that others lack");
}

#[test]
fn what_is_recorded_later_is_for_the_new_recipients() {
    let mut ring = Ring::new(1, 1);
    hours(&mut ring, 1);
    let old = shown_to(&ring.disks, SECRET);
    let (mut writer, _) = mount(boxed(&ring.disks), &Opener::alone(&ring.timeline)).unwrap();
    // Nobody who could read unwraps the old keys.
    writer.set_recipients(&[OTHERS.to_owned()], &BTreeMap::new(), &ring.timeline).unwrap();
    writer.close(&ring.timeline).unwrap();
    hours(&mut ring, 1);
    let new = shown_to(&ring.disks, OTHER);
    assert!(new > 0);
    assert_eq!(shown_to(&ring.disks, SECRET), old);
}

#[test]
fn destroyed_keys_are_on_no_member_and_what_they_encrypted_is_given_out_no_more() {
    let mut ring = Ring::new(2, 1);
    hours(&mut ring, 4);
    let all = shown_to(&ring.disks, SECRET);
    let wrapped: BTreeMap<u64, Vec<u8>> =
        reader_on(&ring.disks).key_log().keys().map(|key| (key.id, key.wrapped.clone())).collect();
    // Made at 0, 1, 2 and 3 hours, and it is 4: what was recorded from 1 on is not all expired.
    let age_ns = 5 * HOUR_NS / 2;
    let destroy = |writer: &mut Writer| {
        writer.leave_slot(&ring.timeline)?;
        writer.expire(Retention { max_age_ns: age_ns, erases: true }, age_ns, &ring.timeline)?;
        let destroyed = writer.destroy_keys(age_ns, &ring.timeline)?;
        assert_eq!(destroyed.iter().map(|key| key.id).collect::<Vec<_>>(), [1]);
        assert_eq!(writer.destroy_keys(age_ns, &ring.timeline)?, []);
        Ok(())
    };
    crash_everywhere(&ring, &destroy, &|disks, is_done| {
        let shown = shown_to(disks, SECRET);
        assert!(shown == all || shown == all / 4 * 3, "{shown} of {all}");
        let reader = reader_on(disks);
        let left: Vec<u64> = reader.key_log().keys().map(|key| key.id).collect();
        // No key goes while what it encrypted is given out.
        assert!(shown < all || left == [1, 2, 3, 4], "{left:?}");
        if is_done {
            assert_eq!(left, [2, 3, 4]);
            assert_eq!(reader.key_log().destroyed().count(), 1);
            assert!(!has_bytes(disks, &wrapped[&1]) && has_bytes(disks, &wrapped[&2]));
        }
    });
}

#[test]
fn a_member_that_was_away_loses_the_keys_when_it_is_back() {
    let mut ring = Ring::new(2, 1);
    hours(&mut ring, 4);
    let wrapped = reader_on(&ring.disks).key_log().keys().next().unwrap().wrapped.clone();
    let (away, here) = ring.disks.split_first().unwrap();
    let (mut writer, _) = mount(boxed(here), &Opener::alone(&ring.timeline)).unwrap();
    writer.leave_slot(&ring.timeline).unwrap();
    let retention = Retention { max_age_ns: HOUR_NS, erases: true };
    writer.expire(retention, HOUR_NS, &ring.timeline).unwrap();
    assert!(!writer.destroy_keys(HOUR_NS, &ring.timeline).unwrap().is_empty());
    writer.close(&ring.timeline).unwrap();
    assert!(!has_bytes(here, &wrapped));
    assert!(has_bytes(core::slice::from_ref(away), &wrapped), "it lies in a drawer");
    let both = reader_on(&ring.disks);
    assert!(both.key_log().keys().all(|key| key.wrapped != wrapped), "nobody takes it from there");
    let (writer, _) = mount(boxed(&ring.disks), &Opener::alone(&ring.timeline)).unwrap();
    writer.close(&ring.timeline).unwrap();
    assert!(!has_bytes(&ring.disks, &wrapped));
}

#[test]
fn a_volume_with_packets_is_encrypted_from_the_next_opening_on() {
    let mut ring = Ring::of((2, 1), &[]);
    let (mut writer, _) = ring.mount();
    ring.append_some(&mut writer);
    writer.close(&ring.timeline).unwrap();
    let plain = shown_to(&ring.disks, OTHER);
    assert!(plain >= 7);
    let begin = |writer: &mut Writer| {
        writer.begin_to_encrypt(&[PUBLIC.to_owned()], &ring.timeline)?;
        // Once more changes nothing.
        writer.begin_to_encrypt(&[OTHERS.to_owned()], &ring.timeline)
    };
    crash_everywhere(&ring, &begin, &|disks, is_done| {
        assert_eq!(shown_to(disks, OTHER), plain, "what is there stays as it is");
        let reader = reader_on(disks);
        assert!(!is_done || reader.superblock().is_encrypted);
        if reader.superblock().is_encrypted {
            assert_eq!(reader.key_log().recipients(), [PUBLIC]);
        }
    });
    let (mut writer, _) = mount(boxed(&ring.disks), &Opener::alone(&ring.timeline)).unwrap();
    begin(&mut writer).unwrap();
    writer.close(&ring.timeline).unwrap();
    let (mut writer, _) = ring.mount();
    ring.append_some(&mut writer);
    writer.close(&ring.timeline).unwrap();
    assert_eq!(shown_to(&ring.disks, OTHER), plain);
    assert!(shown_to(&ring.disks, SECRET) > plain);
    let superblock: &Superblock = &reader_on(&ring.disks).superblock().clone();
    assert!(superblock.is_encrypted);
}
