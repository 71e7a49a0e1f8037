//! A recorder with numbered packets on its standard input.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_wirespool");
/// Ethernet, IPv4 and UDP in front of the number.
const HEADERS_BYTES: usize = 42;
/// Of a packet: about what a mix of traffic has.
const PACKET_BYTES: usize = 600;

/// Runs the binary to its end; gives exit code and output.
pub(crate) fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(BINARY).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// As [`run`], which must succeed.
#[track_caller]
pub(crate) fn done(arguments: &[&str]) -> String {
    let (code, text) = run(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {text}");
    text
}

/// The number in a packet.
pub(crate) fn number(packet: &[u8]) -> u64 {
    u64::from_le_bytes(*packet[HEADERS_BYTES..].first_chunk().unwrap())
}

/// A recorder and the thread that sends it packets.
pub(crate) struct Fed {
    pub(crate) child: Child,
    stop: Arc<AtomicBool>,
    feeder: Option<JoinHandle<u64>>,
}

impl Fed {
    /// Starts a recorder; `pause` lies between two batches of 100 packets.
    pub(crate) fn start(arguments: &[&str], pause: Duration) -> Self {
        let mut command = Command::new(BINARY);
        command.args(arguments).args(["--read", "-", "--json"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let feeder = thread::spawn(move || feed(input, &told, pause));
        Self { child, stop, feeder: Some(feeder) }
    }

    /// Sends no more; gives how many packets were sent.
    pub(crate) fn end(&mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.feeder.take().unwrap().join().unwrap()
    }

    /// kill -9.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.end();
    }
}

/// Sends packets until it is stopped or the reader is gone.
fn feed(mut input: ChildStdin, stop: &AtomicBool, pause: Duration) -> u64 {
    let mut head = Vec::new();
    for field in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, 1_u32] {
        head.extend(field.to_le_bytes());
    }
    if input.write_all(&head).is_err() {
        return 0;
    }
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        let batch: Vec<u8> = (sent..sent + 100).flat_map(record).collect();
        if input.write_all(&batch).is_err() {
            break;
        }
        sent += 100;
        thread::sleep(pause);
    }
    sent
}

/// One packet of a pcap file with nanoseconds.
fn record(number: u64) -> Vec<u8> {
    let seconds = u32::try_from(1_700_000_000 + number / 1_000_000).unwrap();
    let nanos = u32::try_from(number % 1_000_000 * 1000).unwrap();
    let len = u32::try_from(PACKET_BYTES).unwrap();
    let mut bytes: Vec<u8> =
        [seconds, nanos, len, len].iter().flat_map(|field| field.to_le_bytes()).collect();
    let mut packet = vec![0; PACKET_BYTES];
    packet[12] = 8;
    packet[14] = 0x45;
    packet[16..18].copy_from_slice(&u16::try_from(PACKET_BYTES - 14).unwrap().to_be_bytes());
    packet[23] = 17;
    packet[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    packet[38..40].copy_from_slice(&u16::try_from(PACKET_BYTES - 34).unwrap().to_be_bytes());
    packet[HEADERS_BYTES..HEADERS_BYTES + 8].copy_from_slice(&number.to_le_bytes());
    bytes.extend(packet);
    bytes
}
