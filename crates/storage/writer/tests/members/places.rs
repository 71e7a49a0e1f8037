//! Members that lie elsewhere: the superblocks say so, whatever comes in between.

use device::{Crash, Fault, MUTATIONS, Modelled, Rule};
use units::MemberId;
use volume::{NewPlace, Reader};
use writer::{Opener, Writer, mount};

use crate::ring::{Ring, boxed};

fn moved() -> [NewPlace; 2] {
    [1, 2].map(|member| NewPlace { uuid: [member + 1; 16], path: format!("/elsewhere/{member}") })
}

fn paths_of(writer: &Writer) -> Vec<String> {
    writer.superblock().members.iter().map(|entry| entry.path.clone()).collect()
}

#[test]
fn a_new_place_is_on_every_member_and_is_written_once() {
    let ring = Ring::new(2, 1);
    let mut writer = ring.mount();
    let written = |ring: &Ring| -> Vec<u64> {
        ring.disks.iter().map(|disk| disk.work().mutations()).collect()
    };
    writer.remember(&moved(), &ring.timeline).unwrap();
    let once = written(&ring);
    writer.remember(&moved(), &ring.timeline).unwrap();
    assert_eq!(written(&ring), once, "nothing is new");
    drop(writer);
    for disk in &ring.disks {
        let alone = Reader::of_members(vec![Box::new(disk.clone())]).unwrap();
        let entries = &alone.superblock().members;
        let paths: Vec<&str> = entries.iter().map(|entry| &*entry.path).collect();
        assert_eq!(paths, ["", "/elsewhere/1", "/elsewhere/2"]);
    }
}

#[test]
fn wherever_that_is_cut_short_the_volume_comes_up_with_what_was_acknowledged() {
    let mut seen = [0; 2];
    for after in 0..30 {
        for seed in 0..4 {
            let mut ring = Ring::new(2, 1);
            let mut writer = ring.mount();
            ring.append(&mut writer, 10).unwrap();
            writer.drain(&ring.timeline).unwrap();
            let acknowledged = writer.acknowledged();
            for disk in &ring.disks {
                disk.add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
            }
            // It may come to nothing.
            let _interrupted = writer.remember(&moved(), &ring.timeline);
            drop(writer);
            let crash = |disk: &Modelled| disk.crash(Crash::Rows { seed: after * 4 + seed });
            let left: Vec<Modelled> = ring.disks.iter().map(crash).collect();
            let mounted = mount(boxed(&left), &Opener::alone(&ring.timeline));
            let (writer, _) = mounted.unwrap_or_else(|error| panic!("{after}: {error}"));
            let paths = paths_of(&writer);
            let is_old = paths == ["", "", ""];
            assert!(is_old || paths == ["", "/elsewhere/1", "/elsewhere/2"], "{paths:?}");
            seen[usize::from(is_old)] += 1;
            drop(writer);
            ring.check(&left, acknowledged);
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "both come: {seen:?}");
}

#[test]
fn a_member_that_fails_meanwhile_is_left_behind() {
    for after in 0..6 {
        let mut ring = Ring::new(2, 1);
        let mut writer = ring.mount();
        ring.append(&mut writer, 10).unwrap();
        ring.disks[2].add_rule(Rule::new(Fault::Error, MUTATIONS).after(after));
        writer.remember(&moved(), &ring.timeline).unwrap();
        ring.append(&mut writer, 10).unwrap();
        writer.drain(&ring.timeline).unwrap();
        let acknowledged = writer.acknowledged();
        assert!(writer.membership().of(MemberId(2)).is_none(), "{after}");
        writer.close(&ring.timeline).unwrap();
        ring.check(&ring.disks[..2], acknowledged);
    }
}
