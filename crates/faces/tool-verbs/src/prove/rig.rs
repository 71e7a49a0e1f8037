//! One run: a recorder in a process of its own, packets into it, and what it stored.

use core::num::NonZeroU64;
use core::ops::ControlFlow;
use core::time::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

use ::prove::{Ask, Drops, Judge, Judged, Load, Sent, Trial};
use ::replay::{Input, Options, Pace, Rewrite};
use anyhow::{Context, bail};
use capture::{FileOptions, FileSource, Outlet, Source, Transmitter};
use host::{Ended, Program, StopFlag, SystemClock};
use network::{LinkCounters, link_counters};
use units::{Clock, Epoch, NANOS_PER_SECOND, Sequence, Sleep};

use crate::failure::{USAGE, Usage, of_extract};
use crate::progress::Progress;

/// Between two looks whether the recorder has begun.
const LOOK_NS: i64 = NANOS_PER_SECOND / 50;
/// From the opening of the volume until the recorder takes packets.
const BEGIN_NS: i64 = NANOS_PER_SECOND / 5;
/// A recorder that has not begun by then never will.
const BEGIN_MAX_NS: i64 = 120 * NANOS_PER_SECOND;
/// For what is still on its way through the kernel when the last packet has been taken.
const SETTLE_NS: i64 = NANOS_PER_SECOND / 2;
/// For storing what is in memory.
const STOP_MAX: Duration = Duration::from_mins(5);
/// More than the round takes: it is sent from memory.
const MEMORY_BYTES: u64 = 1 << 30;

/// What all runs share.
pub(super) struct Rig<'a> {
    pub(super) load: &'a Load,
    /// Where the round lies as a capture.
    pub(super) round: PathBuf,
    pub(super) volume: PathBuf,
    /// The volume goes away in the end, and its index with it.
    pub(super) is_own_volume: bool,
    pub(super) interfaces: [String; 2],
    /// Further options of `record`.
    pub(super) recorder: Vec<OsString>,
    /// For files of the run.
    pub(super) folder: PathBuf,
    /// Progress within a run; a search reports whole runs.
    pub(super) tells_progress: bool,
    pub(super) stop: &'a StopFlag,
}

pub(super) fn go_on(stop: &StopFlag) -> ControlFlow<()> {
    stop.flow()
}

/// How the volume stands.
struct Standing {
    epoch: Epoch,
    /// The first sequence that is not written yet.
    next: Sequence,
}

impl Rig<'_> {
    /// Bytes of packets that the ring holds beside what is in flight.
    pub(super) fn capacity(&self) -> anyhow::Result<u64> {
        let reader = volume::open_superblocks(&self.volume, &[])
            .map_err(|source| upkeep::Error::of_volume(&self.volume, source))?;
        let (geometry, window) = (reader.geometry(), u64::from(reader.superblock().window));
        let slot_bytes = u64::from(geometry.data_columns) * u64::from(geometry.piece_bytes);
        Ok(geometry.slots.saturating_sub(2 * window) * slot_bytes)
    }

    fn standing(&self) -> Result<Standing, volume::Error> {
        let reader = volume::open_reader(&self.volume, &[])?;
        let next = reader.span().map_or(Sequence(0), |span| span.acknowledged.sequence);
        Ok(Standing { epoch: reader.superblock().joined_epoch, next })
    }

    /// Sends about `packets` packets at a rate and judges what was stored.
    pub(super) fn run(&self, ask: Ask, packets: u64, key: u64) -> anyhow::Result<Trial> {
        let before =
            self.standing().map_err(|source| upkeep::Error::of_volume(&self.volume, source))?;
        let program = self.start()?;
        let program = self.wait_until_it_records(program, before.epoch)?;
        let counters = self.counters()?;
        let report = self.send(ask, packets, key)?;
        SystemClock.sleep_until(SystemClock.boottime_ns() + SETTLE_NS);
        let interface = dropped(counters, self.counters()?);
        program.interrupt();
        let ended = program.wait(STOP_MAX)?;
        let sent =
            Sent { packets: report.packets, bytes: report.bytes, elapsed_ns: report.elapsed_ns };
        let recorder = ::prove::parse_recording(&ended.output, ended.cpu.total())
            .map_err(|_| ended_early(&ended))?
            .offered(&sent);
        let (kernel, writer) = (recorder.kernel_drops, recorder.writer_drops);
        let drops = Drops { interface, kernel, writer };
        let mut notes = report.broken_off;
        let judged = self.judge((before.next, recorder.epoch), (key, sent.packets), drops)?;
        if recorder.stored != judged.read {
            notes.push(format!(
                "the recorder says that it stored {} packets, the volume has {}",
                recorder.stored, judged.read
            ));
        }
        let Judged { account, read, findings } = judged;
        let is_stopped = report.is_stopped;
        Ok(Trial { ask, sent, account, read, recorder, findings, notes, is_stopped })
    }

    /// Starts the recorder: this very program.
    fn start(&self) -> anyhow::Result<Program> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let [_, to] = &self.interfaces;
        let mut arguments: Vec<OsString> = vec!["record".into(), self.volume.clone().into()];
        arguments.extend(["--interface", to, "--json"].map(OsString::from));
        if self.is_own_volume {
            arguments.extend(["--index-dir".into(), self.folder.join("index").into()]);
        }
        arguments.extend(self.recorder.iter().cloned());
        Ok(Program::start(&program, &arguments, &self.folder)?)
    }

    /// Waits until the volume was opened for writing again: the interface was opened before.
    fn wait_until_it_records(&self, mut program: Program, epoch: Epoch) -> anyhow::Result<Program> {
        let until_ns = SystemClock.boottime_ns() + BEGIN_MAX_NS;
        loop {
            let now_ns = SystemClock.boottime_ns();
            if program.has_ended()? || now_ns > until_ns {
                return Err(ended_early(&program.wait(Duration::ZERO)?));
            }
            if self.stop.is_set() {
                bail!("stopped before the first packet");
            }
            // While it is being opened there may be nothing to see.
            if self.standing().is_ok_and(|standing| standing.epoch > epoch) {
                SystemClock.sleep_until(now_ns + BEGIN_NS);
                return Ok(program);
            }
            SystemClock.sleep_until(now_ns + LOOK_NS);
        }
    }

    fn counters(&self) -> Result<[LinkCounters; 2], network::Error> {
        let [from, to] = &self.interfaces;
        Ok([link_counters(from)?, link_counters(to)?])
    }

    fn send(&self, ask: Ask, packets: u64, key: u64) -> anyhow::Result<::replay::Report> {
        let outlet = Transmitter::open(&self.interfaces[0])?;
        let options = Options {
            pace: pace(ask),
            loops: NonZeroU64::new(self.load.rounds(packets)),
            rewrite: Rewrite::Stamps { key },
            pad: false,
            limits: outlet.limits(),
            memory_bytes: MEMORY_BYTES,
        };
        let open = || -> Result<Box<dyn Source>, capture::Error> {
            Ok(Box::new(FileSource::open(&self.round, FileOptions::default())?))
        };
        let input = Input { open: Box::new(open), is_repeatable: true };
        let outlets: Vec<Box<dyn Outlet>> = vec![Box::new(outlet)];
        let mut progress = Progress::new("prove");
        let report = ::replay::replay(&options, input, outlets, &SystemClock, &mut |state| {
            let text = |_| machine_view::replay_progress(state);
            if self.tells_progress {
                progress.share(state.packets, state.total_packets.unwrap_or(packets), &text);
            }
            go_on(self.stop)
        });
        progress.finish();
        Ok(report?)
    }

    /// Reads what was recorded from a sequence on, in one opening of the volume.
    fn judge(
        &self,
        (first, epoch): (Sequence, Epoch),
        (key, sent): (u64, u64),
        drops: Drops,
    ) -> anyhow::Result<Judged> {
        let mut judge = Judge::new(self.load, key, sent);
        let mut progress = Progress::new("prove");
        let mut done = 0;
        let options =
            ::extract::Options { volume: self.volume.clone(), ..::extract::Options::default() };
        let read = ::extract::packets_from(&options, first, &SystemClock, |found| {
            if found.epoch == epoch {
                judge.packet(found.packet.data, found.packet.original_len);
                done += 1;
                if self.tells_progress && done % 65_536 == 0 {
                    progress.share(done, sent, &|_| format!("{done} packets compared"));
                }
            }
            ControlFlow::Continue(())
        });
        progress.finish();
        read.map_err(|error| of_extract(&self.volume, error))?;
        Ok(judge.finish(drops))
    }
}

fn pace(ask: Ask) -> Pace {
    match ask {
        Ask::Bits(per_second) => Pace::Bits { per_second },
        Ask::Packets(per_second) => {
            Pace::Packets { per_1000_seconds: per_second.saturating_mul(1000) }
        }
        Ask::Top => Pace::Top,
    }
}

/// Packets that were dropped between the two sockets. A drop between the ends of a pair is counted
/// at both.
fn dropped(before: [LinkCounters; 2], after: [LinkCounters; 2]) -> u64 {
    let [(from_before, from), (to_before, to)] = [(before[0], after[0]), (before[1], after[1])];
    let sending = from.send_drops.saturating_sub(from_before.send_drops);
    sending.max(to.receive_drops.saturating_sub(to_before.receive_drops))
}

/// Why a recorder ended without a report: its last words, or, where it did not understand its
/// options, its first.
fn ended_early(ended: &Ended) -> anyhow::Error {
    let mut lines = ended.errors.lines();
    let line = if ended.code == Some(USAGE.into()) { lines.next() } else { lines.next_back() };
    let line = line.unwrap_or("it says nothing");
    let line = line.trim_start_matches("wirespool: ").trim_start_matches("error: ");
    let text = format!("the recorder ended early: {line}");
    if ended.code == Some(USAGE.into()) { Usage(text).into() } else { anyhow::anyhow!(text) }
}
