//! `wirespool decrypt`.

use std::path::{Path, PathBuf};

use ::extract::{ExtractReport, Options, Request};
use ::manifest::{CaseInfo, parse_manifest};
use ::packet_output::Target;
use ::raw::{Restored, Then};
use anyhow::Context as _;
use attest::with_suffix;
use clap::Args;
use host::{StopFlag, SystemClock, TemporaryDirectory};
use units::{ByteSize, Clock, Timestamp, hex};

use crate::arguments::KeyFlags;
use crate::evidence::maker;
use crate::extract::{Places, SavingFlags};
use crate::failure::{Outcome, Usage, Verdict, of_extract};
use crate::progress::{Progress, say_lines};
use crate::selection::CaseFlags;
use crate::{arguments, output_file, stdout};

/// A manifest beside a raw extract is read up to this size.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Open a raw extract with a private key.
///
/// Writes the packets of a file that `extract --raw` has made of an encrypted volume, here or on
/// another machine: the same packets, in the same order, with the same statement of what is missing
/// as extract would have written there at that time with the private key. The manifest names the
/// hash of the raw extract; case, purpose and requester are those of its manifest, where that lies
/// beside it and none are given. Needs as much space beside the output as the raw extract has.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool decrypt hour.raw --identity analyst.key -w hour.pcapng
  wirespool decrypt hour.raw 'host 10.0.0.1' --identity analyst.key -w host.pcapng
  wirespool decrypt hour.raw --identity analyst.key --sign signing.key -w evidence.pcapng

Exit code 1 when the extract is incomplete, 4 when the raw extract is not whole; 5 when it is not
known what is missing.")]
pub(crate) struct Flags {
    /// The raw extract
    file: PathBuf,
    /// Only packets of these sessions; all, if it is left out
    query: Vec<String>,
    /// Write to this file, or to standard output (-)
    #[arg(long, short, value_name = "FILE")]
    write: PathBuf,
    #[command(flatten)]
    keys: KeyFlags,
    #[command(flatten)]
    saving: SavingFlags,
    #[command(flatten)]
    case: CaseFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    let file = (flags.write != Path::new("-")).then_some(&*flags.write);
    if file.is_none() && stdout::is_terminal() {
        return Err(Usage(stdout::NO_TEXT.to_owned()).into());
    }
    let own = flags.query.join(" ");
    arguments::query(&own)?;
    let places = Places::new(&flags.saving, file, false)?;
    let manifest = places.begin()?;
    let identities = flags.keys.identities()?;

    // Before there is a folder that has to go again.
    let stop = StopFlag::install()?;
    let folder = folder_for(file)?;
    let mut input = host::open_input(&flags.file)?;
    let mut progress = Progress::new("decrypt");
    let restored = ::raw::restore(&mut input, folder.path(), &mut |bytes| {
        progress.text(&|| format!("{} read", ByteSize(bytes)));
        stop.flow()
    });
    progress.finish();
    let restored = restored.with_context(|| page::safe::path(&flags.file))?;
    let options = Options { identities, ..restored.options() };
    let text = with_times(&own, &restored);
    let query = arguments::query(&text)?;
    let case = case_of(flags, &restored);
    let request = Request { case, ..Request::new(&query, &text) };
    let report = write((&options, &request), &places, restored.made, &stop);
    let report = report.map_err(|error| named(error, flags))?;
    let mut of = report.manifest;
    of.made = SystemClock.realtime();
    of.asked.raw_blake3 = Some(hex(&restored.blake3));
    if let Some(statement) = manifest {
        let names = places.names();
        places.finish(statement, &|key| session_view::manifest_json(&of, maker(), &names, key))?;
    }
    let packets = page::text::plural(report.packets, "packet");
    say_lines(&format!("{packets}, {}", of.completeness));
    Ok(if report.reader_gone { Verdict::Clean } else { Verdict::of(of.completeness.state()) })
}

/// For the members: beside the output, where space is wanted anyway.
fn folder_for(file: Option<&Path>) -> anyhow::Result<TemporaryDirectory> {
    let Some(file) = file else { return Ok(TemporaryDirectory::new("wirespool-decrypt-")?) };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok(TemporaryDirectory::within(folder.unwrap_or(Path::new(".")), ".wirespool-decrypt-")?)
}

/// The query within the times of the raw extract.
fn with_times(own: &str, restored: &Restored) -> String {
    let own = (!own.trim().is_empty()).then(|| format!("({own})"));
    let bounds = arguments::bounds(&restored.times);
    own.into_iter().chain(bounds).collect::<Vec<String>>().join(" and ")
}

/// What is given, else what the manifest beside the raw extract says, if it is of that very file.
fn case_of(flags: &Flags, restored: &Restored) -> CaseInfo {
    let given = flags.case.info();
    if given != CaseInfo::default() {
        return given;
    }
    let path = with_suffix(&flags.file, ".json");
    // Without a manifest, or with one that cannot be read, nothing is known of a case.
    let Ok(text) = host::read_input_text(&path, MANIFEST_BYTES_MAX) else { return given };
    let Ok(manifest) = parse_manifest(&text) else { return given };
    if !manifest.outputs.iter().any(|output| output.blake3 == restored.blake3) {
        say_lines(&format!("{} is of another file: not used", page::safe::path(&path)));
        return given;
    }
    manifest.case
}

fn write(
    (options, request): (&Options, &Request<'_>),
    places: &Places<'_>,
    made: Timestamp,
    stop: &StopFlag,
) -> anyhow::Result<ExtractReport> {
    let mut progress = Progress::new("decrypt");
    let mut output = output_file::create_named(places.file, places.force)?;
    let mut pipe = stdout::bytes();
    let out: &mut dyn std::io::Write = match &mut output {
        Some(output) => output,
        None => &mut pipe,
    };
    let clock = Then(made);
    let target = Target::Pcapng(out);
    let report = ::extract::extract(options, request, target, &clock, &mut |state| {
        progress.text(&|| page::text::plural(state.packets, "packet"));
        stop.flow()
    });
    progress.finish();
    let report = report.map_err(|error| of_extract(&options.volume, error))?;
    output.map(host::Output::finish).transpose()?;
    Ok(report)
}

/// The error of the file that the user knows.
fn named(error: anyhow::Error, flags: &Flags) -> anyhow::Error {
    let name = page::safe::path(&flags.file);
    match error.downcast_ref() {
        Some(::extract::Error::Locked { recipients, .. }) => anyhow::anyhow!(
            "{name} is encrypted: name the file of a private key with --identity FILE (its \
             recipients: {recipients})"
        ),
        Some(::extract::Error::NotForThese { recipients, .. }) => anyhow::anyhow!(
            "{name} is encrypted to others than the identities given; its recipients: {recipients}"
        ),
        _ => error,
    }
}
