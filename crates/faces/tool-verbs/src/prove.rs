//! `wirespool prove`.

mod flags;
mod rig;

use std::path::Path;

use ::prove::{Ask, Found, Load, Search, Trial, Verdict as Shown};
use anyhow::ensure;
use capture::{FileOptions, FileSource, Transmitter};
use host::{StopFlag, SystemClock, TemporaryDirectory, random_bytes, write_file};
use units::{ByteSize, Clock};
use upkeep::CreateOptions;

use crate::failure::{Outcome, Usage, Verdict};
use crate::progress::{Progress, say};
use crate::stdout;

pub use self::flags::Flags;
use flags::{Frames, Plan, amount};
use rig::Rig;

/// The ends of our own pair.
const PAIR: [&str; 2] = ["prove-out", "prove-in"];
/// Most bytes of packets taken from a capture.
const CAPTURE_BYTES: u64 = 256 << 20;
/// What a volume of our own has beyond the packets: what is in flight, and indexes.
const VOLUME_SLACK_BYTES: u64 = 256 << 20;
/// A volume of our own for a search, whose rates are not known beforehand.
const SEARCH_VOLUME_BYTES: u64 = 2 << 30;
/// Where a search begins, if no rate was given.
const SEARCH_PACKETS_PER_SECOND: u64 = 50_000;
const MTU_MIN: usize = 1500;

/// Searches for the highest rate that a recorder stores without loss.
pub fn run(flags: Flags) -> Outcome {
    let json = flags.json;
    let plan = flags.plan()?;
    let stop = StopFlag::install()?;
    let folder = TemporaryDirectory::new("wirespool-prove-")?;
    let mut load = load(&plan)?;
    let interfaces = interfaces(&plan, &load)?;
    let limits = Transmitter::open(&interfaces[0])?.limits();
    load = load.fit(limits).map_err(|error| Usage(error.to_string()))?;
    let round = folder.path().join("round.pcap");
    write_file(&round, &load.pcap())?;
    let volume = match &plan.volume {
        Some(path) => path.clone(),
        None => make_volume(&plan, &load, folder.path(), &stop)?,
    };
    let rig = Rig {
        load: &load,
        round,
        volume,
        is_own_volume: plan.volume.is_none(),
        interfaces,
        recorder: plan.recorder.clone(),
        folder: folder.path().to_path_buf(),
        tells_progress: !plan.finds_limit,
        stop: &stop,
    };
    if plan.finds_limit { search(&plan, &rig, json) } else { once(&plan, &rig, json) }
}

/// The packets that are sent.
fn load(plan: &Plan) -> anyhow::Result<Load> {
    match &plan.frames {
        Frames::Made(sizes) => {
            Ok(Load::made(*sizes, plan.flows).map_err(|error| Usage(error.to_string()))?)
        }
        Frames::Capture(path) => {
            let mut source = FileSource::open(path, FileOptions::default())?;
            let load = Load::captured(&mut source, CAPTURE_BYTES)?;
            if load.left_out > 0 {
                let count = page::text::plural(load.left_out, "packet");
                say(&format!("prove: {count} of the capture cannot be sent, or are too many"));
            }
            Ok(load)
        }
    }
}

/// The two ends: those given, or a pair in a namespace of our own.
fn interfaces(plan: &Plan, load: &Load) -> anyhow::Result<[String; 2]> {
    if let Some(given) = &plan.interfaces {
        return Ok(given.clone());
    }
    let mtu = u32::try_from(load.longest().max(MTU_MIN))?;
    network::enter_namespace()?;
    network::make_pair(PAIR, mtu)?;
    Ok(PAIR.map(ToOwned::to_owned))
}

/// A volume that holds the run, and goes away with it.
fn make_volume(
    plan: &Plan,
    load: &Load,
    folder: &Path,
    stop: &StopFlag,
) -> anyhow::Result<std::path::PathBuf> {
    let path = folder.join("volume");
    let size_bytes = if plan.finds_limit {
        SEARCH_VOLUME_BYTES
    } else {
        load.volume_bytes(plan.packets(load)) + VOLUME_SLACK_BYTES
    };
    let options = CreateOptions::of_file(path.clone(), size_bytes.next_multiple_of(1 << 20));
    let mut progress = Progress::new("prove");
    let created = upkeep::create(&options, &SystemClock, &mut |done, total| {
        progress.bytes(done, total);
        rig::go_on(stop)
    });
    progress.finish();
    created?;
    Ok(path)
}

/// One run.
fn once(plan: &Plan, rig: &Rig<'_>, json: bool) -> Outcome {
    let packets = plan.packets(rig.load);
    let capacity = rig.capacity()?;
    let needed = rig.load.volume_bytes(packets);
    ensure!(
        needed <= capacity,
        Usage(format!(
            "the volume holds {} beside what is in flight, and {packets} of these packets need \
             about {}; send fewer (--packets)",
            ByteSize(capacity),
            ByteSize(needed)
        ))
    );
    let trial = rig.run(plan.ask, packets, key()?)?;
    let text = if json { machine_view::proved_json(&trial) } else { machine_view::proved(&trial) };
    stdout::print(&text)?;
    Ok(verdict(trial.verdict()))
}

fn verdict(shown: Shown) -> Verdict {
    match shown {
        Shown::Lossless => Verdict::Clean,
        Shown::Lost => Verdict::Negative,
        Shown::CannotJudge => Verdict::Unknown,
    }
}

/// Other packets in each run: those of an earlier one are strangers to it.
fn key() -> Result<u64, host::Error> {
    random_bytes().map(u64::from_le_bytes)
}

/// Many runs.
fn search(plan: &Plan, rig: &Rig<'_>, json: bool) -> Outcome {
    let load = rig.load;
    let first = match plan.ask {
        Ask::Packets(per_second) => per_second,
        Ask::Bits(per_second) => load.packets_of_bits(per_second),
        Ask::Top => SEARCH_PACKETS_PER_SECOND,
    };
    let mut search = Search::new(first, plan.repeats);
    let mut trials: Vec<Trial> = Vec::new();
    let capacity = rig.capacity()?;
    let begun_ns = SystemClock.boottime_ns();
    while let Some(rate) = search.next_rate() {
        let wanted = amount(rate, plan.duration);
        let packets = fitting(load, wanted, capacity);
        let trial = rig.run(Ask::Packets(rate), packets, key()?)?;
        let Some(seen) = trial.seen() else { break };
        let short = machine_view::trial_in_short(&trial);
        trials.push(trial);
        search.tell(seen);
        let each_ns = (SystemClock.boottime_ns() - begun_ns) / i64::try_from(trials.len())?;
        let left = page::text::duration(each_ns * i64::from(search.trials_left()));
        match search.next_rate() {
            Some(_) => say(&format!("prove: {short}; about {left} left")),
            None => say(&format!("prove: {short}")),
        }
    }
    let found = Found { limit: search.limit(), trials };
    let text = if json { machine_view::limit_json(&found) } else { machine_view::limit(&found) };
    stdout::print(&text)?;
    Ok(verdict(found.verdict()))
}

/// As many of the packets as the volume holds.
fn fitting(load: &Load, packets: u64, capacity: u64) -> u64 {
    let round = load.volume_bytes(load.round()).max(1);
    // A run ends with its round.
    let most = (capacity / round).saturating_sub(1).max(1) * load.round();
    packets.min(most)
}
