//! `wirespool extract`.

mod places;
mod raw;
mod remote;

use core::cell::RefCell;
use core::ops::ControlFlow;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ::evidence::SigningKey;
use ::extract::{ExtractReport, Options, Request};
use ::manifest::CaseInfo;
use ::packet_output::{SessionStart, Target};
use ::remote::{Download, Failed, Received, There};
use anyhow::bail;
use attest::with_suffix;
use clap::{Args, ValueEnum};
use host::{Output, StopFlag, SystemClock};
use units::ByteSize;
use wire::LinkType;

use crate::custody::approval::ApprovedFlags;
use crate::evidence::maker;
use crate::failure::{Outcome, Usage, Verdict, of_extract, warn};
use crate::output_file;
use crate::progress::{Progress, say_lines};
use crate::reading::ReadingFlags;
use crate::remote::{
    Asked, Place, RemoteFlags, answered, first_given, of_remote, refused, volume_or_word,
};
use crate::selection::{CaseFlags, SelectionFlags, Throttle};
use crate::stdout;

pub(crate) use self::places::{Places, SavingFlags, name_of};

/// Files that --split makes where no --limit says otherwise.
const SESSIONS_MAX: u64 = 1 << 16;

/// Write the packets of sessions as pcapng or pcap.
///
/// Packets are as they were on the wire, byte for byte, with times in nanoseconds, in the order of
/// time. The extract ends with a statement of what is missing from it; a manifest beside the file
/// has the same with checksums, and `verify-extract` compares them later. The file appears when it
/// is whole.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool extract /data/spool host 10.0.0.1 and port 443 -w https.pcapng
  wirespool extract /data/spool session_id 1234.0-17 -w one.pcapng
  wirespool extract /data/spool 'port 53 and after 1h ago' --only-range -w - | tshark -r -
  wirespool extract /data/spool 'sni bad.example' --around 30s --packet-filter arp -w a.pcapng
  wirespool extract /data/spool 'port 80' --payload 're:(?i)user-agent: *curl' -w curl.pcapng
  wirespool find /spool 'app dns' --json | wirespool extract /spool --sessions - -w dns.pcapng
  wirespool extract /data/spool 'host 10.0.0.1' --split sessions -w sessions/
  wirespool extract /data/spool 'host 10.0.0.1' --sign signing.key -w evidence.pcapng
  wirespool extract /data/spool 'port 53' --escrow age1... -w shared.pcapng
  wirespool extract /data/spool 'after 1h ago' --raw -w hour.raw
  wirespool --remote https://sensor:8420 extract spool 'port 53' -w there.pcapng
  wirespool extract /spool 'host 10.0.0.1' --case 2026/17 --purpose 'leak of April' -w e.pcapng

Exit code 1 when the extract is incomplete, or cut by a limit; 5 when that is not known.")]
pub(crate) struct Flags {
    /// The volume: a file or a block device; with --remote the name of one
    #[arg(required_unless_present = "remote", value_parser = volume_or_word())]
    volume: Option<PathBuf>,
    /// The query; its words may be one argument or several
    query: Vec<String>,
    /// Write to this file, or to standard output (-); with --split into this new directory
    #[arg(long, short, value_name = "FILE")]
    write: PathBuf,
    /// pcap takes one link type a file, so further ones go into FILE-LINKTYPE
    #[arg(long, value_enum, default_value_t = Format::Pcapng)]
    format: Format,
    /// A file for each session, named by its start, its ends and its id, in a new folder; at most
    /// 65536, or --limit
    #[arg(long, value_enum, conflicts_with = "force")]
    split: Option<Split>,
    /// Of an encrypted volume the packets of the query's times as they lie on the disks, which
    /// needs no private key; `wirespool decrypt` opens the file elsewhere
    #[arg(long, conflicts_with_all = ["split", "format", "explain", "remote"])]
    raw: bool,
    #[command(flatten)]
    saving: SavingFlags,
    #[command(flatten)]
    case: CaseFlags,
    #[command(flatten)]
    approved: ApprovedFlags,
    /// Print on standard error what the query cost
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    selection: SelectionFlags,
    #[command(flatten)]
    reading: ReadingFlags,
    #[command(flatten)]
    remote: RemoteFlags,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    Pcapng,
    Pcap,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Split {
    Sessions,
}

/// Everything that was validated.
struct Config<'a> {
    options: Options,
    request: Request<'a>,
    /// `None` is standard output.
    file: Option<&'a Path>,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    host::keep_freed_memory();
    let file = (flags.write != Path::new("-")).then_some(&*flags.write);
    check(flags, file)?;
    if flags.remote.is_given() {
        check_remote(flags)?;
    }
    let Asked { place, words } = flags.remote.asked(flags.volume.as_deref(), &flags.query)?;
    match place {
        Place::Here(volume) if flags.raw => {
            let places = Places::new(&flags.saving, file, false)?;
            let Flags { query, selection, reading, case, .. } = flags;
            raw::run(&raw::RawAsked { query, selection, reading, case }, volume, &places)
        }
        Place::Here(volume) => run_here(flags, volume, file),
        Place::There(there) => run_there(flags, *there, &words),
    }
}

fn run_here(flags: &Flags, volume: PathBuf, file: Option<&Path>) -> Outcome {
    let approved = flags.approved.approved()?;
    let selection = match &approved {
        Some((query, ..)) => flags.selection.selection(std::slice::from_ref(query))?,
        None => flags.selection.selection(&flags.query)?,
    };
    let case = approved.as_ref().map_or_else(|| flags.case.info(), |(_, case, _)| case.clone());
    let mut request = Request { case, ..selection.request() };
    if flags.split.is_some() {
        request.limits.sessions.get_or_insert(SESSIONS_MAX);
    }
    let pseudonyms = selection.pseudonyms().filter(|pseudonyms| pseudonyms.has_escrow());
    let escrow = match (pseudonyms, file) {
        (None, _) => None,
        (Some(_), None) => {
            let text = "--escrow writes FILE.escrow: name a file with -w";
            return Err(Usage(text.to_owned()).into());
        }
        (Some(_), Some(file)) if host::is_device(file) => {
            let text = "--escrow writes FILE.escrow, and nothing lies beside a device: name a file";
            return Err(Usage(text.to_owned()).into());
        }
        (Some(pseudonyms), Some(file)) => {
            let path = with_suffix(file, ".escrow");
            Some((pseudonyms, output_file::create(&path, flags.saving.force)?))
        }
    };
    let mut config = Config { options: flags.reading.options(volume)?, request, file };
    let places = Places::new(&flags.saving, file, flags.split.is_some())?;
    let manifest = places.begin()?;

    flags.reading.catch_up(&mut config.options);
    let (mut report, files) = extract(flags, &config)?;
    report.manifest.asked.approved = approved.map(|(.., named)| named);
    if let Some((pseudonyms, output)) = escrow {
        let first = report.manifest.outputs.first();
        let hash = first.map(|output| output.sha256).unwrap_or_default();
        let name = file.map(name_of).unwrap_or_default();
        let (sealed, named) = pseudonyms.escrow(&name, &hash)?.expect("it has an escrow");
        output.finish_with(&sealed)?;
        report.manifest.asked.escrow = Some(named);
    }
    if let Some(statement) = manifest {
        places.finish(statement, &|key| {
            session_view::manifest_json(&report.manifest, maker(), &files, key)
        })?;
    }
    if flags.explain {
        say_lines(&session_view::explain(&report.explain));
    }
    let completeness = &report.manifest.completeness;
    let counted = session_view::counted(report.packets, report.manifest.rows);
    say_lines(&format!("{counted}, {completeness}"));
    if report.packets == 0
        && let Some(hint) = session_view::unmet_names(config.request.query, &report.met)
    {
        say_lines(&hint);
    }
    if report.rewritten_packets > 0 {
        let packets = page::text::plural(report.rewritten_packets, "packet");
        say_lines(&format!(
            "{packets} got the link layer of the first: pcap holds one, pcapng all"
        ));
    }
    Ok(if report.reader_gone { Verdict::Clean } else { Verdict::of(completeness.state()) })
}

/// Refuses what a service cannot do.
fn check_remote(flags: &Flags) -> anyhow::Result<()> {
    let own = [
        (flags.format == Format::Pcap, "--format pcap"),
        (flags.split.is_some(), "--split"),
        (flags.explain, "--explain"),
        (flags.case.info() != CaseInfo::default(), "--case, --purpose or --requester"),
    ];
    let given = first_given(&own).or_else(|| flags.selection.given_of_here());
    match given.or_else(|| flags.reading.given()) {
        Some(flag) => Err(refused(flag).into()),
        None => Ok(()),
    }
}

fn run_there(flags: &Flags, there: There, words: &[String]) -> Outcome {
    let (query, parameters) = flags.selection.remote(words)?;
    let there = there.with_query(query);
    let file = (flags.write != Path::new("-")).then_some(&*flags.write);
    let places = Places::new(&flags.saving, file, false)?;
    let manifest = places.begin()?;
    let mut file = output_file::create_named(places.file, flags.saving.force)?;
    let mut pipe = stdout::bytes();
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => &mut pipe,
    };
    let mut download = Download::new(&there, parameters, out);
    let mut shown = remote::Shown(Progress::new("extract"));
    let received = download.all(&mut shown);
    shown.0.finish();
    let Received { said, manifest: text } = match received {
        Ok(received) => received,
        Err(Failed::Output(error)) if error.kind() == ErrorKind::BrokenPipe => {
            return Ok(Verdict::Clean);
        }
        Err(Failed::Output(error)) => return Err(error.into()),
        Err(Failed::Remote(::remote::Error::Stopped)) => {
            let part = ByteSize(download.bytes());
            bail!("stopped: {part} came of an extract that has no end");
        }
        Err(Failed::Remote(error)) => return Err(of_remote(error)),
    };
    let is_empty = said.count == Some(0);
    // Nothing appears before all of it is known.
    let answered = answered(&there, said)?;
    let name = places.file.map(name_of);
    let make = |key: Option<&SigningKey>| {
        session_view::manifest_of(text.as_deref()?, name.as_deref(), key)
    };
    file.map(Output::finish).transpose()?;
    match (manifest, make(None), &places.manifest) {
        (Some(statement), Some(_), _) => places.finish(statement, &|key| {
            make(key).expect("it has the form of a manifest whoever signs it")
        })?,
        (Some(_), None, Some(path)) => warn(&format!(
            "the service keeps no manifest of this extract: {} is not written, and the bytes were \
             not compared with one",
            page::safe::path(path)
        )),
        _ => {}
    }
    say_lines(&answered.said);
    answered.hint.iter().filter(|_| is_empty).for_each(|hint| say_lines(hint));
    Ok(Verdict::of(answered.state))
}

/// What makes no sense together.
fn check(flags: &Flags, file: Option<&Path>) -> Result<(), Usage> {
    let refused = if file.is_none() && stdout::is_terminal() {
        stdout::NO_TEXT
    } else if file.is_none() && flags.split.is_some() {
        "--split writes many files: -w names a folder"
    } else if flags.split.is_some() && flags.format == Format::Pcap {
        "--split writes pcapng"
    } else if flags.format == Format::Pcap && flags.selection.comments {
        "pcap has no place for --comments: --format pcapng has"
    } else {
        return Ok(());
    };
    Err(Usage(refused.to_owned()))
}

/// Runs the job into its outputs; gives the names of the files.
fn extract(flags: &Flags, config: &Config<'_>) -> anyhow::Result<(ExtractReport, Vec<String>)> {
    let Some(path) = config.file else {
        let mut out = stdout::bytes();
        let target = match flags.format {
            Format::Pcapng => Target::Pcapng(&mut out),
            Format::Pcap => Target::Pcap(&mut out),
        };
        return Ok((extract_into(config, target)?, Vec::new()));
    };
    match (flags.split, flags.format) {
        (Some(Split::Sessions), _) => extract_sessions(config, path),
        (None, Format::Pcap) => extract_pcap(flags, config, path),
        (None, Format::Pcapng) => {
            let mut output = output_file::create(path, flags.saving.force)?;
            let report = extract_into(config, Target::Pcapng(&mut output))?;
            output.finish()?;
            Ok((report, vec![name_of(path)]))
        }
    }
}

/// One file for each link type; the first has the name that was given.
fn extract_pcap(
    flags: &Flags,
    config: &Config<'_>,
    path: &Path,
) -> anyhow::Result<(ExtractReport, Vec<String>)> {
    let mut outputs: Vec<(PathBuf, Rc<RefCell<Output>>)> = Vec::new();
    let mut open = |link_type: LinkType| -> io::Result<Box<dyn Write>> {
        let path = if outputs.is_empty() {
            path.to_path_buf()
        } else {
            let name = link_type.name().map_or_else(|| link_type.0.to_string(), str::to_owned);
            with_suffix(path, &format!("-{name}"))
        };
        let output = output_file::create(&path, flags.saving.force).map_err(io::Error::other)?;
        let output = Rc::new(RefCell::new(output));
        outputs.push((path, Rc::clone(&output)));
        Ok(Box::new(Shared(output)))
    };
    let report = extract_into(config, Target::PcapByLinkType(&mut open))?;
    let mut names = Vec::new();
    for (path, output) in outputs {
        let output = Rc::into_inner(output).expect("the job has ended and let go of its outputs");
        output.into_inner().finish()?;
        names.push(name_of(&path));
    }
    Ok((report, names))
}

/// One file for each session, in a folder that appears when it is whole.
fn extract_sessions(
    config: &Config<'_>,
    path: &Path,
) -> anyhow::Result<(ExtractReport, Vec<String>)> {
    let folder = output_file::create_folder(path)?;
    let mut names = Vec::new();
    let mut open = |session: &SessionStart| -> io::Result<Box<dyn Write>> {
        let name = format!("{}.pcapng", session_view::session_file_name(session));
        let file = folder.file(&name);
        names.push(name);
        Ok(Box::new(file))
    };
    let report = extract_into(config, Target::BySession(&mut open))?;
    folder.finish()?;
    Ok((report, names))
}

/// An output that the job writes to and we finish.
struct Shared(Rc<RefCell<Output>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

fn extract_into(config: &Config<'_>, target: Target<'_>) -> anyhow::Result<ExtractReport> {
    let stop = StopFlag::install()?;
    let mut throttle = Throttle::new(&config.options, &config.request);
    let mut progress = Progress::new("extract");
    let report =
        ::extract::extract(&config.options, &config.request, target, &SystemClock, &mut |state| {
            progress.text(&|| {
                let pieces = page::text::plural(state.pieces, "piece");
                format!("{} from {pieces}", page::text::plural(state.packets, "packet"))
            });
            if stop.is_set() { ControlFlow::Break(()) } else { throttle.rest() }
        });
    progress.finish();
    report.map_err(|error| of_extract(&config.options.volume, error))
}
