//! Volumes of several members: every packet is there with all of them, with as many of them gone as
//! there is parity, and after recording went on without some.

use std::path::{Path, PathBuf};

use host::SystemClock;
use record::{Input, record};
use units::Sequence;

use crate::numbered;
use crate::volumes::{
    Packet, assert_clean, new_volume_of, open, options, packets_of_file, packets_of_volume, stripes,
};

const PIECE_BYTES: u32 = 64 << 10;

/// Data and parity columns.
const SHAPES: [(u8, u8); 6] = [(2, 0), (1, 1), (3, 1), (2, 2), (4, 2), (7, 2)];

struct Volume {
    folder: tempfile::TempDir,
    members: Vec<PathBuf>,
}

impl Volume {
    fn new((data, parity): (u8, u8)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = |number| folder.path().join(format!("member-{number}"));
        let members: Vec<PathBuf> = (0..data + parity).map(name).collect();
        new_volume_of(&members, parity, PIECE_BYTES, 24 << 20);
        Self { folder, members }
    }

    fn capture(&self, round: u32, packets: u64) -> PathBuf {
        let path = self.folder.path().join(format!("capture-{round}.pcap"));
        std::fs::write(&path, numbered::capture(round, packets)).unwrap();
        path
    }

    fn record(&self, member: usize, capture: &Path) -> record::Report {
        let input = Input::Files(vec![capture.to_owned()]);
        let options = options(&self.members[member], input);
        record(&options, &SystemClock, &mut |_| core::ops::ControlFlow::Continue(())).unwrap()
    }

    fn hide(&self, member: usize) {
        std::fs::rename(&self.members[member], self.members[member].with_extension("away"))
            .unwrap();
    }

    fn bring_back(&self, member: usize) {
        std::fs::rename(self.members[member].with_extension("away"), &self.members[member])
            .unwrap();
    }
}

fn all_of(path: &Path) -> Vec<Packet> {
    stripes(&open(path)).into_iter().flat_map(|stripe| stripe.packets).map(|(_, it)| it).collect()
}

#[test]
fn every_packet_is_there_whichever_members_are_gone() {
    for shape in SHAPES {
        let volume = Volume::new(shape);
        let capture = volume.capture(0, 3000);
        let report = volume.record(0, &capture);
        assert_eq!(report.total.stored, 3000, "{shape:?}");
        let sent = packets_of_file(&capture);
        for member in &volume.members {
            assert_eq!(packets_of_volume(member), sent, "{shape:?} by {}", member.display());
        }
        let count = volume.members.len();
        for first in (0..count).filter(|_| shape.1 > 0) {
            for second in (first..count).filter(|&second| shape.1 == 2 || second == first) {
                let Some(left) = (0..count).find(|&it| it != first && it != second) else {
                    continue;
                };
                volume.hide(first);
                if second != first {
                    volume.hide(second);
                }
                assert_eq!(all_of(&volume.members[left]), sent, "{shape:?} -{first} -{second}");
                volume.bring_back(first);
                if second != first {
                    volume.bring_back(second);
                }
            }
        }
    }
}

#[test]
fn recording_goes_on_without_a_member_and_with_it_again() {
    for shape in [(3, 1), (4, 2)] {
        let volume = Volume::new(shape);
        let captures =
            [(0, 700), (1, 800), (2, 900)].map(|(round, packets)| volume.capture(round, packets));
        volume.record(0, &captures[0]);
        volume.hide(1);
        volume.record(0, &captures[1]);
        volume.bring_back(1);
        volume.record(1, &captures[2]);
        let sent: Vec<Packet> = captures.iter().flat_map(|it| packets_of_file(it)).collect();
        assert_eq!(all_of(&volume.members[0]), sent, "{shape:?}");
        // What it missed is known, and no damage.
        let reader = open(&volume.members[1]);
        assert_clean(&reader);
        let entry = &reader.superblock().members[1];
        assert!(
            entry.stale_from < entry.clean_from && entry.clean_from < Sequence::MAX,
            "{entry:?}"
        );
        // Another one may fail now: what member 1 missed is on the others.
        if shape.1 == 2 {
            volume.hide(2);
            assert_eq!(all_of(&volume.members[0]), sent, "{shape:?} without another one");
        }
    }
}
