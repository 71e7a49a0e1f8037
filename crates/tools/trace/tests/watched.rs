//! From packets and sockets to a report and a capture in which every packet says whose it is.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers may stop at once")]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use capture::{FileOptions, FileSource, Interface, Next, Source};
use format::pcapng::{ByteOrder, OptionCode, Options};
use network::sockets::Endpoint;
use testdata::Corpus;
use trace::{Error, Opened, Output, Owner, Report, Seen, Watch, watch};
use units::{ManualClock, Timestamp};

/// The client of the capture speaks from this address, to a server at that one.
const CLIENT: &str = "192.0.2.10";
const SERVER: &str = "198.51.100.80";
/// Its page by HTTP, and its question for a name.
const WEB: u16 = 40_003;
const NAME: u16 = 40_001;

fn owner(process: u32, name: &str) -> Arc<Owner> {
    Arc::new(Owner { process, name: name.to_owned() })
}

/// A socket of the client, connected to a port of the server.
fn socket(protocol: u8, ports: [u16; 2], owner: &Arc<Owner>) -> (Endpoint, Option<Arc<Owner>>) {
    let end = |ip: &str, port| format!("{ip}:{port}").parse().unwrap();
    let (local, remote) = (end(CLIENT, ports[0]), end(SERVER, ports[1]));
    (Endpoint { protocol, local, remote, inode: 1 }, Some(Arc::clone(owner)))
}

/// Two processes with one connection each.
fn two() -> [(Endpoint, Option<Arc<Owner>>); 2] {
    [socket(6, [WEB, 80], &owner(11, "browser")), socket(17, [NAME, 53], &owner(22, "resolver"))]
}

fn capture() -> (Corpus, PathBuf) {
    let small = Corpus::small();
    let path = small.path().join("pcap/protocols.pcap");
    (small, path)
}

/// The interfaces of a capture, which a file says on its way: a link has them from the beginning.
fn interfaces(path: &Path) -> Vec<Interface> {
    let mut source = FileSource::open(path, FileOptions::default()).unwrap();
    while !matches!(source.next_batch(Duration::from_secs(1)).unwrap(), Next::End) {}
    source.interfaces().to_vec()
}

/// What is watched of a capture while sockets are as told.
fn watched<W: Write>(
    path: &Path,
    seen: &Seen,
    only_known: bool,
    to: W,
) -> Result<(Report, Option<W>), Error> {
    let mut source = FileSource::open(path, FileOptions::default()).unwrap();
    let output = Output::new(to, "a test", &interfaces(path)).unwrap();
    let watching = Watch {
        look: &mut || Ok(seen.clone()),
        sent: &mut Vec::new,
        opened: &mut Vec::new,
        is_over: &mut || Ok(false),
        only_known,
    };
    watch(&mut source, watching, output, &ManualClock::new(Timestamp(7)))
}

/// A packet as it was written: its time, its bytes, its comment, its process.
type Written = (Timestamp, Vec<u8>, Option<String>, Option<u32>);

fn read(bytes: &[u8]) -> Vec<Written> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traced.pcapng");
    std::fs::write(&path, bytes).unwrap();
    packets(&path)
}

fn packets(path: &Path) -> Vec<Written> {
    let mut source = FileSource::open(path, FileOptions::default()).unwrap();
    let mut packets = Vec::new();
    loop {
        match source.next_batch(Duration::from_secs(1)).unwrap() {
            Next::Packets(batch) => packets.extend(batch.map(|packet| {
                let (mut comment, mut process) = (None, None);
                for option in Options::new(packet.options, ByteOrder::Little) {
                    match option.code {
                        OptionCode::COMMENT => {
                            comment = Some(String::from_utf8(option.value.to_vec()).unwrap());
                        }
                        OptionCode::PACKET_PROCESS_THREAD => {
                            let number = option.value.first_chunk().unwrap();
                            process = Some(u32::from_le_bytes(*number));
                        }
                        _ => {}
                    }
                }
                (packet.timestamp, packet.head.to_vec(), comment, process)
            })),
            Next::End => return packets,
            Next::Block(_) | Next::Idle => {}
        }
    }
}

/// What the corpus says of the session from a port of the client: packets, bytes.
fn stated(small: &Corpus, port: u16) -> (u64, u64) {
    let text = std::fs::read_to_string(small.path().join("ref/tshark_sessions.tsv")).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let rows = lines.map(|line| head.iter().copied().zip(line).collect::<BTreeMap<_, _>>());
    let is_it = |row: &BTreeMap<&str, &str>| {
        row["file"] == "protocols.pcap"
            && row["ip_a"] == CLIENT
            && row["port_a"] == port.to_string()
    };
    let row = rows.into_iter().find(is_it).unwrap();
    (row["pkts"].parse().unwrap(), row["frame_bytes"].parse().unwrap())
}

#[test]
fn every_packet_says_whose_it_is_and_the_report_adds_up() {
    let (small, path) = capture();
    let seen = Seen { sockets: two().to_vec(), only: None };
    let (report, bytes) = watched(&path, &seen, false, Vec::new()).unwrap();
    let (original, written) = (packets(&path), read(&bytes.unwrap()));
    // All of them, as they were.
    assert!(original.iter().map(|it| (it.0, &it.1)).eq(written.iter().map(|it| (it.0, &it.1))));
    let count = |process| written.iter().filter(|packet| packet.3 == process).count();
    let (web, name) = (stated(&small, WEB), stated(&small, NAME));
    assert_eq!(count(Some(11)), usize::try_from(web.0).unwrap());
    assert_eq!(count(Some(22)), usize::try_from(name.0).unwrap());
    for (_, _, comment, process) in &written {
        let expected = match process {
            Some(11) => Some("browser (process 11)"),
            Some(22) => Some("resolver (process 22)"),
            _ => None,
        };
        assert_eq!(comment.as_deref(), expected);
    }
    let share = |process: Option<u32>| {
        let is_it = |owner: &Option<Arc<Owner>>| owner.as_ref().map(|it| it.process) == process;
        let share = report.shares.iter().find(|share| is_it(&share.owner)).unwrap();
        (share.packets, share.bytes)
    };
    assert_eq!((share(Some(11)), share(Some(22))), (web, name));
    let sum: u64 = report.shares.iter().map(|share| share.packets).sum();
    let all = u64::try_from(written.len()).unwrap();
    assert_eq!((sum, report.packets, report.left_out), (all, all, 0));
    assert!(report.shares.is_sorted_by(|one, next| one.bytes >= next.bytes));
    assert!(!report.is_broken_off && report.kernel_drops == 0);
}

#[test]
fn packets_of_nobody_known_are_left_out_where_wished() {
    let (small, path) = capture();
    let seen = Seen { sockets: two()[..1].to_vec(), only: None };
    let (report, bytes) = watched(&path, &seen, true, Vec::new()).unwrap();
    let written = read(&bytes.unwrap());
    assert!(written.iter().all(|packet| packet.3 == Some(11)));
    let (web, _) = stated(&small, WEB);
    let all = u64::try_from(packets(&path).len()).unwrap();
    assert_eq!((report.packets, report.left_out), (web, all - web));
    assert_eq!(report.of_nobody_known, all - web);
    assert_eq!(report.shares.len(), 1);
}

#[test]
fn what_is_known_after_a_packet_came_is_known_of_it_and_packets_stay_in_order() {
    let (small, path) = capture();
    // No look finds the sockets, and the kernel reports them when all is captured.
    let reports = std::cell::Cell::new(0);
    let connection = |ports: [u16; 2]| {
        let end = |ip: &str, port| format!("{ip}:{port}").parse().unwrap();
        [end(CLIENT, ports[0]), end(SERVER, ports[1])]
    };
    let mut opened = || {
        reports.set(reports.get() + 1);
        let [_, remote] = connection([NAME, 53]);
        let asks = trace::Ends::Sender { protocol: 17, port: NAME, remote };
        let web = Opened {
            ends: trace::Ends::Connection(connection([WEB, 80])),
            owner: Some(owner(11, "browser")),
        };
        // The first time the packets are still to come.
        if reports.get() == 1 { vec![] } else { vec![web, Opened { ends: asks, owner: None }] }
    };
    let mut source = FileSource::open(&path, FileOptions::default()).unwrap();
    let output = Output::new(Vec::new(), "a test", &interfaces(&path)).unwrap();
    let watching = Watch {
        look: &mut || Ok(Seen::default()),
        sent: &mut Vec::new,
        opened: &mut opened,
        is_over: &mut || Ok(false),
        only_known: true,
    };
    let clock = ManualClock::new(Timestamp(7));
    let (report, bytes) = watch(&mut source, watching, output, &clock).unwrap();
    let written = read(&bytes.unwrap());
    let (web, name) = (stated(&small, WEB), stated(&small, NAME));
    assert_eq!(report.packets, web.0);
    assert!(written.iter().all(|packet| packet.3 == Some(11)));
    let times = |packets: &[Written]| packets.iter().map(|packet| packet.0).collect::<Vec<_>>();
    let mut original = times(&packets(&path));
    original.retain(|at| times(&written).contains(at));
    assert_eq!(times(&written), original);
    assert_eq!(report.left_out - report.of_nobody_known, name.0, "those of another process");
}

#[test]
fn all_else_is_of_the_only_process_that_there_ever_was() {
    let (_small, path) = capture();
    let seen = Seen { sockets: two()[1..].to_vec(), only: Some(owner(33, "crawler")) };
    let (report, bytes) = watched(&path, &seen, true, Vec::new()).unwrap();
    // But for two by which the kernel finds neighbours.
    assert_eq!((report.left_out, report.of_nobody_known), (2, 2));
    let written = read(&bytes.unwrap());
    assert!(written.iter().all(|packet| matches!(packet.3, Some(22 | 33))));
    assert!(report.shares.iter().any(|share| share.owner == Some(owner(33, "crawler"))));
}

/// A reader that goes away, or a disk that is full, after so many bytes.
struct Ends(usize, io::ErrorKind);

impl Write for Ends {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(self.1)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_and_a_full_disk_is_an_error() {
    let (_small, path) = capture();
    let seen = Seen::default();
    let gone = watched(&path, &seen, false, Ends(1000, io::ErrorKind::BrokenPipe)).unwrap();
    assert!(gone.0.is_broken_off && gone.1.is_none());
    let full = watched(&path, &seen, false, Ends(1000, io::ErrorKind::StorageFull));
    let Err(Error::Output(error)) = full else { panic!("it went on") };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn what_cannot_be_looked_at_ends_it() {
    let (_small, path) = capture();
    let mut source = FileSource::open(&path, FileOptions::default()).unwrap();
    let output = Output::new(Vec::new(), "a test", &interfaces(&path)).unwrap();
    let refused = || {
        let error = io::Error::from(io::ErrorKind::PermissionDenied);
        host::Error::System { operation: "list the sockets", source: error }
    };
    let watching = Watch {
        look: &mut || Err(refused().into()),
        sent: &mut Vec::new,
        opened: &mut Vec::new,
        is_over: &mut || Ok(false),
        only_known: false,
    };
    let ended = watch(&mut source, watching, output, &ManualClock::new(Timestamp(7)));
    assert!(matches!(ended, Err(Error::Network(_))));
}
