//! `wirespool fleet extract`.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use ::evidence::OutputSummary;
use ::fleet::{Event, Extracted, Fault, Limits, Merged, Part, Taken, Whole, manifest_json};
use ::sensors::Extracting;
use clap::Args;
use host::{Output, SystemClock};
use units::Clock as _;

use super::asked::{FleetFlags, ask, check_answered, ended, names};
use crate::evidence::maker;
use crate::extract::{Places, SavingFlags, name_of};
use crate::failure::{Outcome, Usage, Verdict};
use crate::progress::Progress;
use crate::remote::refused;
use crate::selection::{CaseFlags, SelectionFlags};
use crate::{output_file, stdout};

/// Write the packets of sessions of all sensors as one pcapng.
///
/// Packets are as they were on the wire, byte for byte, in the order of time over all sensors;
/// interfaces have the name of their sensor (west:eth0). What sensors send is compared with the
/// manifests that they seal. The file appears when every sensor has ended, with a manifest beside
/// it, which `verify-extract` compares later. Limits count for each sensor.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool fleet extract 'host 10.0.0.1 and port 443' -w https.pcapng
  wirespool fleet extract 'port 53 and after 1h ago' --only-range -w - | tshark -r -
  wirespool fleet extract 'sni bad.example' --sensor west --deadline 5m -w west.pcapng

Exit code 1 when the extract is incomplete, or a sensor did not answer; 5 when that is not known; 3
when none answered.")]
pub(super) struct Flags {
    /// The query; its words may be one argument or several
    query: Vec<String>,
    /// Write to this file, or to standard output (-)
    #[arg(long, short, value_name = "FILE")]
    write: PathBuf,
    #[command(flatten)]
    saving: SavingFlags,
    #[command(flatten)]
    case: CaseFlags,
    #[command(flatten)]
    selection: SelectionFlags,
    #[command(flatten)]
    fleet: FleetFlags,
}

pub(super) fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    let file = (flags.write != Path::new("-")).then_some(&*flags.write);
    if file.is_none() && stdout::is_terminal() {
        return Err(Usage(stdout::NO_TEXT.to_owned()).into());
    }
    if let Some(flag) = flags.selection.given_of_here() {
        return Err(refused(flag).into());
    }
    let (query, parameters) = flags.selection.remote(&flags.query)?;
    let network = flags.fleet.network()?;
    let names = names(&network);
    let places = Places::new(&flags.saving, file, false)?;
    let manifest = places.begin()?;
    let mut output = output_file::create_named(places.file, places.force)?;
    let mut pipe = stdout::bytes();
    let out: &mut dyn Write = match &mut output {
        Some(output) => output,
        None => &mut pipe,
    };
    let mut merged = match Merged::begin(out, &names, &query) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Verdict::Clean),
        merged => merged?,
    };
    let extracting = Extracting::new(&network, query.clone(), parameters.clone());
    let limits = flags.fleet.limits(None);
    let parts = packets(&extracting, (&names, &limits), &mut merged)?;
    let whole = Whole { parts, of: "packet", is_limited: false, has_limit: false };
    check_answered(&whole)?;
    if whole.parts.iter().any(|part| part.outcome == Err(Fault::Stopped)) {
        let packets = page::text::plural(whole.count(), "packet");
        anyhow::bail!("stopped: {packets} came of an extract that has no end");
    }
    let (packets, bytes, hashes) = merged.finish(&whole.to_string(), &whole.parts)?;
    let (sha256, blake3) = (hashes.sha256, hashes.blake3);
    let file = places.file.map(name_of);
    let summary = OutputSummary { file, link_type: None, packets, bytes, sha256, blake3 };
    output.map(Output::finish).transpose()?;
    if let Some(statement) = manifest {
        let extracted = Extracted {
            case: flags.case.info(),
            query: &query,
            parameters: &parameters,
            made: SystemClock.realtime(),
            whole: &whole,
            outputs: [summary],
            hashes: &extracting.hashes(),
        };
        places.finish(statement, &|key| manifest_json(&extracted, maker(), key))?;
    }
    Ok(ended(&whole, true))
}

/// Writes the packets of all sensors; what came of each.
fn packets(
    extracting: &Extracting<'_>,
    (names, limits): (&[String], &Limits),
    merged: &mut Merged<'_>,
) -> anyhow::Result<Vec<Part>> {
    let mut progress = Progress::new("fleet extract");
    let mut counts = vec![0_u64; names.len()];
    let parts = ask(extracting, (names, limits), &mut |event| {
        match event {
            Event::Item(sensor, block) => {
                merged.take(sensor, &block)?;
                *counts.get_mut(sensor).expect("each has one") += u64::from(block.is_packet());
            }
            Event::Idle => {
                let packets = merged.packets();
                progress.text(&|| page::text::plural(packets, "packet"));
                merged.flush()?;
            }
        }
        Ok(Taken::More)
    });
    progress.finish();
    let mut parts = parts?;
    for (part, count) in parts.iter_mut().zip(counts) {
        part.count = count;
    }
    Ok(parts)
}
