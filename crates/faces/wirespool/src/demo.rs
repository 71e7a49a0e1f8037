//! `wirespool demo`: the whole way of a packet, on real captures, in a folder that goes away.

use core::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ::extract::{ExtractReport, Request};
use ::packet_output::Target;
use ::record::{Input, Options};
use anyhow::{Context, bail};
use clap::Args;
use host::{Output, StopFlag, SystemClock, TemporaryDirectory, write_file};
use network::loopback;
use page::text::Zone;
use query::Query;
use session_view::SessionTable;
use units::{Clock, NANOS_PER_SECOND};
use upkeep::CreateOptions;

use crate::failure::{Outcome, Verdict, line, of_extract, of_record};
use crate::{evidence, stdout};

/// Real captures with names in TLS, HTTP and DNS; sources and licences stand in demo/README.md.
const CAPTURES: [(&str, &[u8]); 4] = [
    ("dns.pcap", include_bytes!("../demo/dns.pcap")),
    ("http.pcap", include_bytes!("../demo/http.pcap")),
    ("tls.pcap", include_bytes!("../demo/tls.pcap")),
    ("tls-ipv6.pcap", include_bytes!("../demo/tls-ipv6.pcap")),
];
/// A session in them.
const WANTED: &str = "sni www.github.com";

const VOLUME_BYTES: u64 = 128 << 20;
const PIECE_BYTES: u32 = 512 << 10;
const POOL_BYTES: u64 = 16 << 20;
const LOOPBACK: &str = "lo";
/// How long the interface is recorded once it was talked on.
const LIVE_NS: i64 = NANOS_PER_SECOND;
const DATAGRAMS: u8 = 10;
/// Sessions shown: a busy loopback interface has more.
const SESSIONS_SHOWN: u64 = 40;

/// See it all work, in a temporary directory.
///
/// Creates a volume, records real captures that come with the program and, where that is permitted,
/// a second of traffic that it makes itself on the loopback interface; shows the sessions, extracts
/// one, and verifies the volume and the extract. Needs no privilege and takes a few seconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool demo
  wirespool demo --keep /tmp/wirespool-demo     and look at the files afterwards")]
pub(crate) struct Flags {
    /// Work in this directory, which must be new, and leave it there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

struct Demo {
    folder: PathBuf,
    volume: PathBuf,
    stop: StopFlag,
    is_clean: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let stop = StopFlag::install()?;
    let temporary = match &flags.keep {
        Some(path) if host::target(path)? != host::Target::Absent => {
            bail!("{} exists already; name a new directory", page::safe::path(path));
        }
        Some(path) => {
            host::Directory::open(path)?;
            None
        }
        None => Some(TemporaryDirectory::new("wirespool-demo-")?),
    };
    let folder = temporary.as_ref().map(|temporary| temporary.path().to_path_buf());
    let folder = folder.or_else(|| flags.keep.clone()).expect("one of the two was made");
    let mut demo = Demo { volume: folder.join("volume"), folder, stop, is_clean: true };
    demo.create()?;
    demo.record_captures()?;
    demo.record_loopback()?;
    demo.show_sessions()?;
    demo.extract()?;
    demo.verify()?;
    match &flags.keep {
        Some(path) => step(&format!("everything is in {}", page::safe::path(path)))?,
        None => step("done; the directory is removed")?,
    }
    Ok(Verdict::clean_if(demo.is_clean))
}

fn step(text: &str) -> anyhow::Result<()> {
    Ok(stdout::print(&format!("--> {text}\n"))?)
}

impl Demo {
    fn go_on(&self) -> ControlFlow<()> {
        self.stop.flow()
    }

    fn create(&self) -> anyhow::Result<()> {
        let of_file = CreateOptions::of_file(self.volume.clone(), VOLUME_BYTES);
        let options = CreateOptions { piece_bytes: PIECE_BYTES, sparse: true, ..of_file };
        let created = upkeep::create(&options, &SystemClock, &mut |_, _| self.go_on())?;
        let (path, id) = (page::safe::path(&self.volume), created.superblock.volume_id);
        step(&format!("created {path}, volume {id}"))
    }

    fn options(&self, input: Input, name: &str) -> Options {
        Options {
            pool_bytes: Some(POOL_BYTES),
            index_dir: Some(self.folder.join("index")),
            name: Some(name.to_owned()),
            ..Options::new(self.volume.clone(), input)
        }
    }

    fn record_captures(&mut self) -> anyhow::Result<()> {
        let captures = self.folder.join("captures");
        host::Directory::open(&captures)?;
        for (name, bytes) in CAPTURES {
            write_file(&captures.join(name), bytes)?;
        }
        let options = self.options(Input::Files(vec![captures]), "demo captures");
        let report = ::record::record(&options, &SystemClock, &mut |_| self.go_on())
            .map_err(|error| of_record(&self.volume, error))?;
        self.tell("recorded real captures", &report)
    }

    fn tell(&mut self, what: &str, report: &::record::Report) -> anyhow::Result<()> {
        self.is_clean &= volume_view::is_clean(report);
        let total = &report.total;
        let stored = page::text::plural(total.stored, "packet");
        let lost = total.kernel_drops + total.writer_drops;
        let rows = page::text::plural(report.rows, "session row");
        step(&format!("{what}: {stored} stored, {lost} lost, {rows}"))
    }

    /// Where raw sockets are not allowed, the demo says so and goes on.
    fn record_loopback(&mut self) -> anyhow::Result<()> {
        let input = Input::Interfaces(vec![LOOPBACK.to_owned()]);
        let options = self.options(input, "demo loopback");
        let mut until_ns = None;
        let mut talked = Ok(None);
        let report = ::record::record(&options, &SystemClock, &mut |_| {
            let now = SystemClock.boottime_ns();
            match until_ns {
                None => {
                    talked = loopback::converse(DATAGRAMS).map(Some);
                    until_ns = Some(now + LIVE_NS);
                    self.go_on()
                }
                Some(until_ns) if now >= until_ns => ControlFlow::Break(()),
                Some(_) => self.go_on(),
            }
        });
        let report = match report {
            Ok(report) => report,
            Err(error @ ::record::Error::Capture(_)) => {
                let reason = line(&of_record(&self.volume, error));
                return step(&format!("recorded nothing live: {reason}"));
            }
            Err(error) => return Err(of_record(&self.volume, error)),
        };
        talked.context("the demo could not make traffic")?;
        self.tell("recorded our own traffic on the loopback interface", &report)
    }

    fn reading(&self) -> ::extract::Options {
        ::extract::Options {
            volume: self.volume.clone(),
            index_dir: Some(self.folder.join("index")),
            ..::extract::Options::default()
        }
    }

    fn show_sessions(&mut self) -> anyhow::Result<()> {
        let mut table = SessionTable::new(stdout::width(), Zone::Utc);
        let mut text = String::new();
        let (query, limit) = (Query::all(), Some(SESSIONS_SHOWN));
        let found = ::extract::find(&self.reading(), &query, limit, &SystemClock, &mut |event| {
            if let ::found::Event::Found(found) = event {
                text += &table.push(found);
            }
            self.go_on()
        });
        let found = found.map_err(|error| of_extract(&self.volume, error))?;
        text += &table.finish();
        step(&format!("wirespool find: {}", page::text::plural(found.sessions, "session")))?;
        stdout::print(&text)?;
        Ok(())
    }

    fn extract(&mut self) -> anyhow::Result<()> {
        let query = Query::parse(WANTED, SystemClock.realtime()).context("the demo's query")?;
        let request = Request { whole_sessions: true, ..Request::new(&query, WANTED) };
        let path = self.folder.join("session.pcapng");
        let mut output = Output::create(&path, false)?;
        let reading = self.reading();
        let report = ::extract::extract(
            &reading,
            &request,
            Target::Pcapng(&mut output),
            &SystemClock,
            &mut |_| self.go_on(),
        );
        let report = report.map_err(|error| of_extract(&self.volume, error))?;
        output.finish()?;
        let files = ["session.pcapng".to_owned()];
        let manifest =
            session_view::manifest_json(&report.manifest, evidence::maker(), &files, None);
        write_file(&with_json(&path), manifest.as_bytes())?;
        let packets = page::text::plural(report.packets, "packet");
        self.is_clean &= report.packets > 0 && report.manifest.completeness.is_complete();
        step(&format!("wirespool extract '{WANTED}': {packets} in {}", page::safe::path(&path)))?;
        self.verify_extract(&report, &path)
    }

    fn verify_extract(&mut self, report: &ExtractReport, path: &Path) -> anyhow::Result<()> {
        let output = report.manifest.outputs.first().context("an extract has an output")?;
        let verdict = ::manifest::verify_extract(output, &mut host::open_input(path)?);
        self.is_clean &= verdict.is_ok();
        let verdict = verdict.map_or_else(|error| error.to_string(), |()| "unchanged".to_owned());
        step(&format!("wirespool verify-extract: {verdict}"))
    }

    fn verify(&mut self) -> anyhow::Result<()> {
        let report = upkeep::verify(&self.volume, &[], &mut |_, _| self.go_on())?;
        self.is_clean &= report.is_clean && report.is_complete;
        step(&format!("wirespool verify: {}", volume_view::verification(&report).trim_end()))
    }
}

fn with_json(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    name.into()
}
