//! `wirespool hold`.

use core::ops::ControlFlow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ::extract::{Completeness, ExtractReport, Request, SigningKey, Target};
use anyhow::bail;
use clap::Args;
use host::{Output, StopFlag, SystemClock};
use units::{ByteSize, Clock};

use crate::failure::{Outcome, Verdict, of_extract};
use crate::find::ReadingFlags;
use crate::progress::{Progress, say, say_lines};
use crate::selection::{SelectionFlags, Throttle};
use crate::{evidence, stdout};

/// Ends of the names of a hold's two files.
const PACKETS: &str = ".pcapng";
const MANIFEST: &str = ".pcapng.json";

/// Put packets aside, beyond the reach of the ring.
///
/// A hold is an extract with its manifest in a directory of holds. The holds of a directory may
/// have --size-max bytes in all: a hold that does not fit is refused, and nothing of it is left.
/// Holds stay until you remove their two files. `verify-extract` checks them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool hold /data/spool 'host 10.0.0.1' --hold-dir /data/holds
  wirespool hold /data/spool 'sni *.example.com' --hold-dir /data/holds --size-max 100G
  wirespool hold --list --hold-dir /data/holds

Exit code 1 when something is missing from the hold; its manifest says what.")]
pub(crate) struct Flags {
    /// The volume: a file or a block device
    #[arg(required_unless_present = "list")]
    volume: Option<PathBuf>,
    /// The query; its words may be one argument or several
    query: Vec<String>,
    /// Where holds are kept, best on another disk
    #[arg(long, value_name = "DIR")]
    hold_dir: PathBuf,
    /// Most bytes of all holds there
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = crate::arguments::size)]
    size_max: u64,
    /// List the holds there
    #[arg(long, conflicts_with = "volume")]
    list: bool,
    /// Sign the manifest with this key, which keygen has made
    #[arg(long, value_name = "KEYFILE")]
    sign: Option<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    selection: SelectionFlags,
    #[command(flatten)]
    reading: ReadingFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let Some(volume) = &flags.volume else { return list(flags) };
    let selection = flags.selection.selection(&flags.query)?;
    let mut options = flags.reading.options(volume.clone());
    flags.reading.catch_up(&mut options);
    let request = selection.request();
    let stop = StopFlag::install()?;
    let mut throttle = Throttle::new(&options, &request);
    let mut progress = Progress::new("hold");
    let key = flags.sign.as_deref().map(evidence::signing_key).transpose()?;
    let (folder, size_max) = (&*flags.hold_dir, flags.size_max);
    let room = Room { folder, size_max, also_empty: true, key: key.as_ref() };
    let aside = put_aside(&room, &options, &request, &mut |state| {
        progress.text(&|| page::text::plural(state.packets, "packet"));
        if stop.is_set() { ControlFlow::Break(()) } else { throttle.rest() }
    });
    progress.finish();
    match aside? {
        Aside::Full { used } => {
            let (folder, most) = (page::safe::path(&flags.hold_dir), ByteSize(flags.size_max));
            let used = ByteSize(used);
            bail!(
                "{folder} has no space for it: its holds have {used} of {most}; remove some, or \
                 raise --size-max"
            );
        }
        Aside::Nothing | Aside::Stopped => Ok(Verdict::Clean),
        Aside::Held { path, packets, completeness } => {
            let packets = page::text::plural(packets, "packet");
            say_lines(&format!("{packets} in {}, {completeness}", page::safe::path(&path)));
            Ok(Verdict::of(completeness.state()))
        }
    }
}

/// What became of packets that were to be put aside.
pub(crate) enum Aside {
    Held {
        path: PathBuf,
        packets: u64,
        completeness: Box<Completeness>,
    },
    /// No packet matches, and an empty hold is not wanted.
    Nothing,
    /// Broken off; nothing is left.
    Stopped,
    /// They do not fit beside `used` bytes; nothing of them is left.
    Full {
        used: u64,
    },
}

/// Where holds go, and how.
pub(crate) struct Room<'a> {
    pub(crate) folder: &'a Path,
    /// Bytes that all holds may take.
    pub(crate) size_max: u64,
    /// One without packets is kept, too.
    pub(crate) also_empty: bool,
    /// Signs the manifests.
    pub(crate) key: Option<&'a SigningKey>,
}

/// An extract with its manifest into a folder of holds that may take so many bytes in all.
pub(crate) fn put_aside(
    room: &Room<'_>,
    options: &::extract::Options,
    request: &Request<'_>,
    progress: &mut dyn FnMut(&::extract::Progress) -> ControlFlow<()>,
) -> anyhow::Result<Aside> {
    let &Room { folder, size_max, also_empty, key } = room;
    host::Directory::open(folder)?;
    let used = used_bytes(folder)?;
    let name = free_name(folder)?;
    let path = folder.join(format!("{name}{PACKETS}"));
    let mut output = Bounded {
        output: Output::create(&path, false)?,
        left: size_max.saturating_sub(used),
        is_full: false,
    };
    let taken =
        ::extract::extract(options, request, Target::Pcapng(&mut output), &SystemClock, progress);
    let is_over = |report: &ExtractReport| !report.manifest.completeness.stopped;
    if taken.as_ref().is_ok_and(|report| report.packets == 0 && !also_empty && is_over(report)) {
        return Ok(Aside::Nothing);
    }
    let manifest = |report: &ExtractReport| {
        let files = [format!("{name}{PACKETS}")];
        session_view::manifest_json(&report.manifest, evidence::maker(), &files, key)
    };
    // The manifest counts, too.
    let fits = |text: &String| u64::try_from(text.len()).is_ok_and(|bytes| bytes <= output.left);
    let text = taken.as_ref().ok().map(manifest);
    if output.is_full || text.as_ref().is_some_and(|text| !fits(text)) {
        return Ok(Aside::Full { used });
    }
    let report = taken.map_err(|error| of_extract(&options.volume, error))?;
    let completeness = report.manifest.completeness;
    if completeness.stopped && !also_empty {
        return Ok(Aside::Stopped);
    }
    let mut written = Output::create(&folder.join(format!("{name}{MANIFEST}")), false)?;
    written.write_all(text.unwrap_or_default().as_bytes())?;
    output.output.finish()?;
    written.finish()?;
    let completeness = Box::new(completeness);
    Ok(Aside::Held { path, packets: report.packets, completeness })
}

/// Bytes that holds take, manifests included.
pub(crate) fn used_bytes(folder: &Path) -> anyhow::Result<u64> {
    Ok(host::files_in(folder)?.iter().map(|(_, bytes)| bytes).sum())
}

/// A name that no hold has: by the second, by this process, as others may end holds of the same
/// second, and by a number where that is not enough.
fn free_name(folder: &Path) -> anyhow::Result<String> {
    let now = SystemClock.realtime().to_string();
    let second: String = now.chars().take(19).filter(|letter| !"-:".contains(*letter)).collect();
    let files = host::files_in(folder)?;
    let is_free = |name: &String| {
        let path = folder.join(format!("{name}{PACKETS}"));
        files.iter().all(|(file, _)| *file != path)
    };
    let process = host::own_process();
    let names = (1_u64..).map(|number| match number {
        1 => format!("hold-{second}-{process}"),
        number => format!("hold-{second}-{process}-{number}"),
    });
    Ok(names.into_iter().find(is_free).expect("there are more numbers than files"))
}

/// A file that may take so many bytes and no more.
struct Bounded {
    output: Output,
    left: u64,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if len > self.left {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = self.output.write(bytes)?;
        self.left -= u64::try_from(count).unwrap_or(len);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

fn list(flags: &Flags) -> Outcome {
    let mut holds = Vec::new();
    for (path, _) in host::files_in(&flags.hold_dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".json") else { continue };
        match ::extract::parse_hold(stem, &host::read_text(&path)?) {
            Ok(hold) => holds.push(hold),
            Err(error) => say(&format!("{}: {error}", page::safe::path(&path))),
        }
    }
    let text = if flags.json {
        session_view::holds_json(&holds)
    } else {
        session_view::holds(&holds, stdout::width())
    };
    stdout::print(&text)?;
    Ok(Verdict::Clean)
}
