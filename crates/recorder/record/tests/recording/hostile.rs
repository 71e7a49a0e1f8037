//! Captures made to keep the recorder from its work: what does not fit is counted, and whatever an
//! input gives or does not give, a stop is heard.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use std::sync::Arc;
use std::time::Instant;

use format::head::Kind;
use format::pcapng::{
    EnhancedPacketFields, OptionCode, put_block, put_enhanced_packet, put_interface_description,
    put_option, put_section_header,
};
use host::SystemClock;
use record::{Input, Report, record};
use units::{EachSequence, InterfaceId};
use wire::LinkType;

use crate::volumes::{folder, new_volume, open, options, packets_of_volume, run, stripes};

fn section() -> Vec<u8> {
    let mut file = Vec::new();
    put_section_header(&mut file, &[]);
    file
}

fn packet(file: &mut Vec<u8>, interface: u32, bytes: &[u8], options: &[u8]) {
    let original_len = u32::try_from(bytes.len()).unwrap();
    let fields = EnhancedPacketFields { interface, time: 0, original_len, options };
    put_enhanced_packet(file, &fields, [bytes, &[], &[]]);
}

fn comments(count: usize, len: usize) -> Vec<u8> {
    let mut options = Vec::new();
    for _ in 0..count {
        put_option(&mut options, OptionCode::COMMENT, &vec![b'c'; len]);
    }
    options
}

/// Records a file onto a volume with small pieces; a recording without end is stopped.
fn recorded(file: &[u8], piece_bytes: u32) -> (Report, tempfile::TempDir, PathBuf) {
    let folder = folder();
    let (volume, path) = (folder.path().join("volume"), folder.path().join("file"));
    new_volume(&volume, piece_bytes, 64 << 20);
    fs::write(&path, file).unwrap();
    let began = Instant::now();
    let report = record(&options(&volume, Input::Files(vec![path])), &SystemClock, &mut |_| {
        assert!(began.elapsed() < Duration::from_mins(1), "it ends");
        ControlFlow::Continue(())
    });
    (report.unwrap(), folder, volume)
}

#[test]
fn options_longer_than_a_piece_are_left_out_and_counted() {
    for (count, len) in [(50, 65_000), (1, 65_000), (2000, 40), (9000, 0)] {
        let mut file = section();
        put_interface_description(&mut file, LinkType::ETHERNET, 0, &[]);
        packet(&mut file, 0, b"before", &[]);
        packet(&mut file, 0, &[7; 300], &comments(count, len));
        packet(&mut file, 0, b"behind", &[]);
        let (report, _folder, volume) = recorded(&file, 64 << 10);
        assert_eq!((report.total.offered, report.total.stored), (3, 3), "{count} of {len}");
        let found = packets_of_volume(&volume);
        let bytes: Vec<_> = found.into_iter().map(|(_, _, _, bytes)| bytes).collect();
        assert_eq!(bytes, [&b"before"[..], &[7; 300], b"behind"]);
        let left_out = report.notes.iter().find(|note| note.contains(" of 1 packet: "));
        assert_eq!(left_out.is_some(), count * (len + 4) > 60_000, "{:?}", report.notes);
        assert!(report.writer.stripes < 10, "{} stripes of 3 packets", report.writer.stripes);
    }
}

#[test]
fn the_longest_packet_leaves_no_room_for_options() {
    let mut file = section();
    put_interface_description(&mut file, LinkType::ETHERNET, 0, &[]);
    packet(&mut file, 0, &vec![7; 70_000], &comments(1, 5));
    let (report, _folder, volume) = recorded(&file, 64 << 10);
    assert_eq!((report.total.stored, report.total.too_long), (1, 1));
    let [(_, _, original_len, bytes)] = &packets_of_volume(&volume)[..] else { panic!("one") };
    assert!(*original_len == 70_000 && bytes.len() > 60_000);
    assert!(report.notes.iter().any(|note| note.contains("left out: 1 option of 1 packet: ")));
}

#[test]
fn what_a_file_says_of_an_interface_is_cut_to_what_a_piece_bears() {
    // Each of these bytes is three where it is shown.
    let mut options = Vec::new();
    put_option(&mut options, OptionCode::INTERFACE_NAME, &vec![0xff; 65_535]);
    put_option(&mut options, OptionCode::INTERFACE_DESCRIPTION, &vec![0xff; 65_535]);
    let filter = [&[0][..], &vec![0xff; 65_534][..]].concat();
    put_option(&mut options, OptionCode::INTERFACE_FILTER, &filter);
    options.extend(comments(50, 65_000));
    let mut file = section();
    put_interface_description(&mut file, LinkType::ETHERNET, 0, &options);
    packet(&mut file, 0, b"packet", &[]);
    let (report, _folder, volume) = recorded(&file, 16 << 10);
    assert_eq!(report.total.stored, 1);
    assert_eq!(packets_of_volume(&volume)[0].3, b"packet");
    assert!(report.notes.iter().any(|note| note.contains("were cut")), "{:?}", report.notes);
}

#[test]
fn a_file_does_not_choose_the_number_of_its_interface() {
    // The custom option in which a piece says the number, with another one: see docs/format.md.
    let mut forged = format::head::ENTERPRISE_NUMBER.to_le_bytes().to_vec();
    forged.extend([1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let mut options = Vec::new();
    put_option(&mut options, OptionCode::CUSTOM_BYTES_NO_COPY, &forged);
    let mut file = section();
    put_interface_description(&mut file, LinkType::ETHERNET, 0, &options);
    packet(&mut file, 0, b"packet", &[]);
    let (report, _folder, volume) = recorded(&file, 16 << 10);
    assert_eq!(report.total.stored, 1);
    let reader = open(&volume);
    let mut buffer = vec![0; reader.piece_bytes()];
    let span = reader.span().unwrap();
    let mut numbers = Vec::new();
    for sequence in (span.tail..=span.acknowledged.sequence).each() {
        let slot = reader.slot(sequence, 0, &mut buffer).unwrap();
        for stripe in slot.stripes.iter().filter(|it| it.head.stripe.kind == Kind::Data) {
            let mut walk = format::piece::packets(volume::Reader::body(&stripe.head, &buffer));
            assert!(walk.all(|packet| packet.is_ok()));
            numbers.extend(walk.interfaces().iter().map(|interface| interface.id));
        }
    }
    assert_eq!(numbers, [InterfaceId(0)]);
}

#[test]
fn many_interfaces_cost_no_more_than_their_packets() {
    let mut file = Vec::new();
    let mut packets = 0;
    for at in 0_u32..20_000 {
        // Each section anew, and many in one.
        if at % 1000 < 500 {
            put_section_header(&mut file, &[]);
        }
        let mut options = Vec::new();
        put_option(&mut options, OptionCode::INTERFACE_NAME, format!("{at:0200}").as_bytes());
        put_interface_description(&mut file, LinkType::ETHERNET, 0, &options);
        packet(&mut file, 0, &[at as u8; 20], &[]);
        packets += 1;
    }
    let began = Instant::now();
    let (report, _folder, volume) = recorded(&file, 1 << 20);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(report.total.stored, packets);
    assert!(report.interfaces.len() <= 1025, "{}", report.interfaces.len());
    assert!(report.writer.bytes < 3 * file.len() as u64, "{} bytes", report.writer.bytes);
    let lengths: Vec<_> = stripes(&open(&volume)).into_iter().map(|it| it.packets.len()).collect();
    assert_eq!(lengths.into_iter().sum::<usize>() as u64, packets);
    assert!(report.notes.iter().any(|note| note.contains("more interfaces than the limit")));
}

#[test]
fn notes_and_errors_of_a_folder_are_bounded() {
    let folder = folder();
    let (volume, captures) = (folder.path().join("volume"), folder.path().join("captures"));
    new_volume(&volume, 64 << 10, 8 << 20);
    for name in 0..1500 {
        let below = captures.join(format!("{}", name % 7));
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(format!("{name}")), b"no capture").unwrap();
        fs::write(below.join(format!("{name}.cut")), &section()[..20]).unwrap();
    }
    let report = run(&options(&volume, Input::Files(vec![captures])));
    assert!(report.notes.len() < 200, "{} notes", report.notes.len());
    assert!(report.notes.iter().any(|note| note.starts_with("1400 further notes")));
    assert_eq!(report.broken_off.len(), 1001);
}

/// How long a recording goes on after it was stopped, once it reported a few times how far it
/// is.
#[track_caller]
fn time_to_stop(volume: &Path, input: PathBuf) -> Duration {
    let mut looks = 0;
    let mut stopped = None;
    let report = record(&options(volume, Input::Files(vec![input])), &SystemClock, &mut |_| {
        looks += 1;
        if looks < 3 {
            return ControlFlow::Continue(());
        }
        stopped.get_or_insert_with(Instant::now);
        ControlFlow::Break(())
    });
    report.unwrap();
    stopped.expect("the input does not end by itself").elapsed()
}

/// A pipe with a name, and who writes to it until it is gone.
fn written(path: &Path, write: impl FnMut(&mut File) -> std::io::Result<()> + Send + 'static) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let (path, mut write) = (path.to_owned(), write);
    thread::spawn(move || {
        let mut pipe = OpenOptions::new().write(true).open(path).unwrap();
        while write(&mut pipe).is_ok() {}
    });
}

#[test]
fn a_stop_is_heard_whatever_an_input_gives() {
    let folder = folder();
    let volume = folder.path().join("volume");
    new_volume(&volume, 64 << 10, 8 << 20);
    let path = |name: &str| folder.path().join(name);

    // A pipe without a writer, and one whose writer says nothing.
    assert!(Command::new("mkfifo").arg(path("nobody")).status().unwrap().success());
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    written(&path("silent"), move |_| {
        thread::sleep(Duration::from_millis(20));
        if over.load(Ordering::Relaxed) { Err(std::io::ErrorKind::Other.into()) } else { Ok(()) }
    });
    // A byte at a time of a block of 15 MiB.
    let mut large = section();
    put_block(&mut large, 77, |body| body.extend(vec![0; 15 << 20]));
    let mut bytes = large.into_iter();
    written(&path("drops"), move |pipe| {
        thread::sleep(Duration::from_millis(1));
        pipe.write_all(&[bytes.next().unwrap()])
    });
    // Blocks without packets, for ever: the smallest, those that are kept, sections, large ones.
    let mut blocks: Vec<(&str, Vec<u8>)> = Vec::new();
    for (name, kind, len) in [("small", 77, 0), ("kept", 4, 8), ("large", 77, 1 << 20)] {
        let mut block = Vec::new();
        put_block(&mut block, kind, |body| body.extend(vec![0; len]));
        blocks.push((name, block.repeat((64 << 10) / block.len() + 1)));
    }
    blocks.push(("sections", section().repeat(2000)));
    let names: Vec<_> = blocks.iter().map(|(name, _)| *name).collect();
    for (name, block) in blocks {
        let mut first = Some(section());
        written(&path(name), move |pipe| {
            pipe.write_all(&first.take().unwrap_or_default())?;
            pipe.write_all(&block)
        });
    }
    // Compressed, and nothing in it: members of gzip, frames of zstd, frames that are skipped.
    let gzip: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let zstd: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0];
    let skipped: &[u8] = &[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
    let packed = [("gzip", gzip, gzip), ("zstd", zstd, zstd), ("skipped", zstd, skipped)];
    for (name, first, empty) in packed {
        let (mut first, many) = (Some(first), empty.repeat((64 << 10) / empty.len() + 1));
        written(&path(name), move |pipe| {
            pipe.write_all(first.take().unwrap_or_default())?;
            pipe.write_all(&many)
        });
    }
    // Blocks of stenotype with no packets: a file with a large hole.
    let mut header = vec![0; 48];
    header[0] = 2;
    header[4] = 48;
    fs::write(path("hole"), header).unwrap();
    OpenOptions::new().write(true).open(path("hole")).unwrap().set_len(1 << 40).unwrap();

    let names = names.into_iter().chain(packed.iter().map(|(name, ..)| *name));
    for name in names.chain(["nobody", "silent", "drops", "hole"]) {
        let elapsed = time_to_stop(&volume, path(name));
        assert!(elapsed < Duration::from_secs(1), "{name}: {elapsed:?}");
    }
    is_over.store(true, Ordering::Relaxed);
}
