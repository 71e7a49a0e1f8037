//! What the lab's own program does inside the guest: sends, makes and checks numbered packets, and
//! records with marks.

use core::ops::ControlFlow;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use ::record::{Input, Options};
use anyhow::{Context, Result, ensure};
use capture::FrameSender;
use host::{StopFlag, SystemClock};
use units::{Clock, NANOS_PER_SECOND};

use crate::log::{MARK_BYTES, mark};
use crate::packets::{Found, frame};
use crate::pcap;

/// Linux, x86 and most others: around the page cache.
const O_DIRECT: i32 = 0o40_000;
/// Beginning of 2026, in seconds; packets of a made file are a microsecond apart.
const START_SECONDS: u64 = 1_767_225_600;
const MICROS_PER_SECOND: u64 = 1_000_000;

/// Which packets, and how fast.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Packets {
    /// Number of the first packet
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// How many
    #[arg(long)]
    count: u64,
    /// Packets a second; 0 is as fast as they are taken
    #[arg(long, default_value_t = 0)]
    rate: u64,
}

impl Packets {
    /// Hands each frame to `take` when it is due.
    fn each(self, take: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let start_ns = SystemClock.boottime_ns();
        for done in 0..self.count {
            if let Some(due_ns) =
                (i128::from(done) * i128::from(NANOS_PER_SECOND)).checked_div(i128::from(self.rate))
            {
                let passed_ns = i128::from(SystemClock.boottime_ns() - start_ns);
                wait(u64::try_from(due_ns - passed_ns).unwrap_or(0));
            }
            take(self.from + done, &frame(self.from + done))?;
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "a sender keeps time")]
fn wait(nanos: u64) {
    if nanos > 0 {
        thread::sleep(Duration::from_nanos(nanos));
    }
}

/// Sends frames on an interface.
pub(crate) fn send(interface: &str, packets: Packets) -> Result<()> {
    let sender = FrameSender::open(interface)?;
    packets.each(&mut |_, frame| Ok(sender.send(frame)?))
}

/// Writes frames as a pcap file.
pub(crate) fn make(out: &mut dyn Write, packets: Packets) -> Result<()> {
    let mut out = BufWriter::new(out);
    pcap::write_header(&mut out)?;
    packets.each(&mut |number, frame| {
        let seconds = u32::try_from(START_SECONDS + number / MICROS_PER_SECOND)?;
        let micros = u32::try_from(number % MICROS_PER_SECOND)?;
        pcap::write_packet(&mut out, (seconds, micros * 1000), frame)?;
        Ok(out.flush()?)
    })
}

/// How many packets an extract holds, if these are the first `sent`, or, if `or_more`, those and
/// some that follow; else what is wrong with it.
pub(crate) fn check(path: &Path, sent: u64, or_more: bool) -> Result<Result<usize, String>> {
    let found = read(path)?;
    let count = u64::try_from(found.count())?;
    let expected = if or_more { count.max(sent) } else { sent };
    let strange = count.saturating_sub(expected);
    let strange = (strange > 0).then(|| format!("{strange} that were not sent"));
    Ok(found.fault(0..expected).or(strange).map_or(Ok(found.count()), Err))
}

/// The numbered packets of a pcap file.
#[expect(clippy::disallowed_methods, reason = "a tool opens files")]
pub(crate) fn read(path: &Path) -> Result<Found> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut found = Found::default();
    pcap::read(&mut BufReader::new(file), &mut |packet| found.take(packet))
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(found)
}

/// Records standard input, and each time more packets are acknowledged writes how many to `marks`,
/// a part of the disk that the volume lies on. So the disk's log says what had to be durable when.
pub(crate) fn record(volume: PathBuf, marks: &Path) -> Result<()> {
    let mut marks = Marks::open(marks)?;
    let stop = StopFlag::install()?;
    let options = Options::new(volume, Input::Files(vec!["-".into()]));
    let mut failed = None;
    let report = ::record::record(&options, &SystemClock, &mut |state| {
        failed = failed.take().or_else(|| marks.raise(state.total.stored).err());
        let is_over = stop.is_set() || failed.is_some();
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    marks.raise(report.total.stored)?;
    failed.map_or(Ok(()), Err)?;
    ensure!(report.total.is_lossless(), "packets were lost: {:?}", report.total);
    println!("{} packets, {} marks", report.total.stored, marks.count);
    Ok(())
}

/// Where the marks go.
#[derive(Debug)]
struct Marks {
    file: File,
    /// Space for one mark at an address that direct I/O takes.
    buffer: Vec<u8>,
    stored: u64,
    count: u64,
}

impl Marks {
    #[expect(clippy::disallowed_methods, reason = "a tool opens files")]
    fn open(path: &Path) -> Result<Self> {
        // Around the page cache, and without a flush: a mark must not make anything durable.
        let file = OpenOptions::new().write(true).custom_flags(O_DIRECT).open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self { file, buffer: vec![0; 2 * MARK_BYTES], stored: 0, count: 0 })
    }

    fn raise(&mut self, stored: u64) -> Result<()> {
        if stored == self.stored {
            return Ok(());
        }
        let start = self.buffer.as_ptr().align_offset(MARK_BYTES);
        let room = self.buffer.get_mut(start..start + MARK_BYTES).expect("there is room for two");
        room.copy_from_slice(&mark(stored));
        self.file.write_all_at(room, 0).context("cannot write a mark")?;
        self.stored = stored;
        self.count += 1;
        Ok(())
    }
}
