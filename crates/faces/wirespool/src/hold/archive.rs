//! `wirespool archive`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::archive::{
    Access, Address, Error, Event, Manners, Options, Remembered, Sensor, Store, Uploader,
    VolumeSource,
};
use clap::{Args, Subcommand};
use host::{StopFlag, SystemClock};

use crate::failure::{Outcome, Usage, Verdict, of_extract};
use crate::progress::{Progress, say};
use crate::reading::ReadingFlags;
use crate::{arguments, stdout};

/// Archive sessions as Parquet in object storage.
///
/// Stores every session once, when it is over, as a row of Parquet files that SQL engines read, in
/// folders for sensor, date and hour: the hour in UTC in which the session ended. What is known to
/// be missing is a table beside them. All state is in the store: a run that was killed is followed
/// by one that goes on, and nothing is there twice. While a recorder runs, only what lies in closed
/// segments is archived: that is about a minute behind. Packets are not archived.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  wirespool archive /data/spool --to file:///data/archive --sensor dc1
  wirespool archive /data/spool --to s3://sessions/prod --sensor dc1 --follow --rate 20M
  wirespool archive verify --to file:///data/archive --sensor dc1
  wirespool archive compact --to file:///data/archive --sensor dc1

S3: credentials and region are those of the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL), or the role of the machine.

Exit code 1 when something is missing from what was archived: lost while it was recorded, damaged,
or overwritten before it was archived; 3 when the store cannot be reached or refuses; 5 when it is
not known whether something is missing.")]
pub(crate) struct Flags {
    #[command(subcommand)]
    command: Option<Command>,
    /// The volume: a file or a block device
    #[arg(required = true)]
    volume: Option<PathBuf>,
    #[command(flatten)]
    to: Option<StoreFlags>,
    /// Whose sessions they are: a name that no other recorder has
    #[arg(long, value_name = "NAME", required = true)]
    sensor: Option<Sensor>,
    /// Go on while it is recorded, until Ctrl-C; a store that is away is waited for
    #[arg(long)]
    follow: bool,
    /// Archive an encrypted volume: its sessions, with names and addresses, lie in the archive
    /// unencrypted
    #[arg(long)]
    plain: bool,
    /// Store at most so many bytes a second
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    rate: Option<u64>,
    /// One JSON object a line: events, and the report at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: ReadingFlags,
}

#[derive(Debug, Subcommand)]
enum Command {
    Verify(VerifyFlags),
    Compact(CompactFlags),
}

/// Where the archive is.
#[derive(Debug, Args)]
struct StoreFlags {
    #[arg(long, value_name = "URL", help = "The archive: file:///FOLDER or s3://BUCKET/PREFIX")]
    to: Address,
    /// The S3-compatible server, where it is not the one of the environment
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Reach the server without encryption; this machine's own may be reached so anyway
    #[arg(long)]
    allow_http: bool,
}

/// Compare an archive with its manifests.
///
/// Reads every object and compares it with the BLAKE3 hash in its manifest: what is damaged,
/// missing, or there without a manifest is a finding. Neither a volume nor a recorder is needed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool archive verify --to file:///data/archive
  wirespool archive verify --to s3://sessions/prod --sensor dc1 --json

Exit code 1 when something is wrong.")]
struct VerifyFlags {
    #[command(flatten)]
    to: StoreFlags,
    /// Only what is of this sensor
    #[arg(long, value_name = "NAME")]
    sensor: Option<Sensor>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// Merge small objects of an archive.
///
/// Merges the objects of each hour that has been over for an hour. One process at a time merges
/// those of a sensor; it may be killed at any time, and the next run ends what it began. Until then
/// who lists the archive, and does not go by its manifests, sees the sessions of one hour twice.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool archive compact --to file:///data/archive --sensor dc1
  wirespool archive compact --to s3://sessions/prod --sensor dc1 --json

Exit code 1 when it was stopped, or an object is missing or damaged.")]
struct CompactFlags {
    #[command(flatten)]
    to: StoreFlags,
    /// Whose objects
    #[arg(long, value_name = "NAME")]
    sensor: Sensor,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    match (&flags.command, &flags.volume, &flags.to, &flags.sensor) {
        (Some(Command::Verify(flags)), ..) => verify(flags),
        (Some(Command::Compact(flags)), ..) => compact(flags),
        (None, Some(volume), Some(to), Some(sensor)) => archive(flags, volume, to, sensor),
        // Where clap asks for nothing because a subcommand might have been meant.
        _ => Err(Usage("name the volume, --to URL and --sensor NAME".to_owned()).into()),
    }
}

fn open(flags: &StoreFlags, stop: &Arc<StopFlag>) -> anyhow::Result<Box<dyn Store>> {
    let stop = Arc::clone(stop);
    let access = Access {
        endpoint: flags.endpoint.clone(),
        allow_http: flags.allow_http,
        is_to_stop: Arc::new(move || stop.is_set()),
    };
    Ok(::archive::open(&flags.to, &access)?)
}

/// An error, with the volume it concerns where it concerns one.
fn failed(volume: &Path, error: Error) -> anyhow::Error {
    match error {
        Error::Extract(source) => of_extract(volume, source),
        error => error.into(),
    }
}

fn archive(flags: &Flags, volume: &Path, to: &StoreFlags, sensor: &Sensor) -> Outcome {
    let stop = Arc::new(StopFlag::install()?);
    let store = open(to, &stop)?;
    // A recorder is left alone: to store what it has taken would close no segment.
    let reading = flags.reading.options(volume.to_path_buf())?;
    let reading = ::extract::Options { recorder: ::extract::Recorder::default(), ..reading };
    let mut source =
        VolumeSource::open(reading, &SystemClock).map_err(|error| failed(volume, error))?;
    if source.is_encrypted() && !flags.plain {
        let volume = page::safe::path(volume);
        return Err(Usage(format!(
            "{volume} is encrypted, and an archive is plain Parquet: with --plain its names and \
             addresses are for everybody who may read the archive; `wirespool extract --raw` \
             copies what is encrypted as it is"
        ))
        .into());
    }
    let cache = host::default_cache_directory().unwrap_or_default().join("archive");
    let memory = Remembered::new(&cache, store.url(), sensor);
    let mut progress = Progress::new("archive");
    let mut said = Ok(());
    let mut tell = |event: &Event| {
        if flags.json && said.is_ok() {
            said = stdout::print(&page::safe::json_line(event));
        }
        match event {
            Event::Begun { .. } | Event::Archived { .. } | Event::Waiting { .. } => {
                progress.text(&|| ::archive::event_text(event));
            }
            event => progress.say(&::archive::event_text(event)),
        }
    };
    let go_on = || stop.flow();
    let manners = Manners { rate: flags.rate, waits: flags.follow };
    let mut uploader = Uploader::new(&*store, &SystemClock, &go_on, &mut tell, manners);
    let options = Options { sensor: sensor.clone(), follow: flags.follow };
    let report = ::archive::archive(&options, &mut source, &mut uploader, &memory);
    progress.finish();
    said?;
    let report = report.map_err(|error| failed(volume, error))?;
    let of = (store.url(), sensor.as_str());
    stdout::print(&if flags.json {
        ::archive::archived_json(&report, of)
    } else {
        ::archive::archived(&report, of)
    })?;
    // That a run with --follow is stopped is how it ends.
    let is_cut = report.is_stopped && !flags.follow;
    let verdict = Verdict::of(report.state());
    Ok(if is_cut { Verdict::Negative } else { verdict })
}

/// Cares for an archive, of which the URL is given back, too.
fn care<T>(
    flags: &StoreFlags,
    work: impl FnOnce(&mut Uploader<'_>) -> Result<T, Error>,
) -> anyhow::Result<(T, String)> {
    let stop = Arc::new(StopFlag::install()?);
    let store = open(flags, &stop)?;
    let go_on = || stop.flow();
    let mut tell = |event: &Event| say(&::archive::event_text(event));
    let mut uploader = Uploader::new(&*store, &SystemClock, &go_on, &mut tell, Manners::default());
    Ok((work(&mut uploader)?, store.url().to_owned()))
}

fn verify(flags: &VerifyFlags) -> Outcome {
    let (report, url) = care(&flags.to, |uploader| {
        let mut progress = Progress::new("archive verify");
        let report = ::archive::verify(uploader, flags.sensor.as_ref(), &mut |done, of| {
            let objects = page::text::plural(of, "object");
            progress.share(done, of, &|_| format!("{done} of {objects}"));
        });
        progress.finish();
        report
    })?;
    if report.manifests == 0 && report.found == 0 && !report.is_stopped {
        let whose = flags.sensor.as_ref();
        let whose = whose.map_or_else(String::new, |sensor| format!(" of the sensor {sensor}"));
        anyhow::bail!("there is no archive{whose} at {url}");
    }
    stdout::print(&if flags.json {
        ::archive::verified_json(&report)
    } else {
        ::archive::verified(&report, &url)
    })?;
    Ok(Verdict::clean_if(report.found == 0 && !report.is_stopped))
}

fn compact(flags: &CompactFlags) -> Outcome {
    // Two containers may have the same name, and their processes the same number.
    let chance: [u8; 8] = host::random_bytes()?;
    let chance = units::hex(&chance);
    let (report, url) = care(&flags.to, |uploader| {
        let mut progress = Progress::new("archive compact");
        let holder = format!("{} process {} ({chance})", host::host_name(), std::process::id());
        let report = ::archive::compact(uploader, &flags.sensor, &holder, &mut |report| {
            progress.text(&|| page::text::plural(report.merged, "object"));
        });
        progress.finish();
        report
    })?;
    stdout::print(&if flags.json {
        ::archive::compacted_json(&report)
    } else {
        ::archive::compacted(&report, &url)
    })?;
    Ok(Verdict::clean_if(!report.is_stopped && report.damaged == 0))
}
