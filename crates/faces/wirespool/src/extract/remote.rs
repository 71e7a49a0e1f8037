//! An extract of a service: its bytes as they come, hashed on the way, and compared with its
//! manifest before the file appears. Where the connection breaks, it goes on behind what is there.

use core::time::Duration;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use ::extract::{Hasher, parse_manifest};
use ::remote::{Error, PCAPNG, Said};
use anyhow::bail;
use host::SystemClock;
use units::{ByteSize, Clock as _, Sleep as _};

use super::{Flags, Format, Places};
use crate::failure::{Outcome, Verdict, warn};
use crate::find::first_given;
use crate::progress::{Progress, say_lines};
use crate::remote::{There, of_remote, refused};
use crate::{output_file, stdout};

/// So often in a row it is tried to go on, without a further byte.
const ATTEMPTS: u32 = 5;
/// Before the first of them; then twice as long each.
const PAUSE: Duration = Duration::from_millis(500);
/// The user may have had enough meanwhile.
const LOOK_NS: i64 = 50_000_000;

/// Refuses what a service cannot do.
pub(super) fn check(flags: &Flags) -> anyhow::Result<()> {
    let own = [
        (flags.format == Format::Pcap, "--format pcap"),
        (flags.split.is_some(), "--split"),
        (flags.explain, "--explain"),
    ];
    let given = first_given(&own).or_else(|| flags.selection.given_of_here());
    match given.or_else(|| flags.reading.given()) {
        Some(flag) => Err(refused(flag).into()),
        None => Ok(()),
    }
}

pub(super) fn run(flags: &Flags, there: There, words: &[String]) -> Outcome {
    let (query, parameters) = flags.selection.remote(words)?;
    let there = there.with_query(query);
    let places = Places::new(flags, (flags.write != Path::new("-")).then_some(&*flags.write))?;
    let manifest = output_file::create_named(places.manifest.as_deref(), flags.force)?;
    let mut file = output_file::create_named(places.file, flags.force)?;
    let mut pipe = stdout::bytes();
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => &mut pipe,
    };
    let mut download = Download::new(&there, parameters, out);
    let Received { said, manifest: text } = match download.all() {
        Ok(received) => received,
        Err(Failed::Output(error)) if error.kind() == ErrorKind::BrokenPipe => {
            return Ok(Verdict::Clean);
        }
        Err(Failed::Output(error)) => return Err(error.into()),
        Err(Failed::Remote(Error::Stopped)) => {
            let part = ByteSize(download.bytes);
            bail!("stopped: {part} came of an extract that has no end");
        }
        Err(Failed::Remote(error)) => return Err(of_remote(error)),
    };
    let is_empty = said.count == Some(0);
    // Nothing appears before all of it is known.
    let answered = there.answered(said).map_err(of_remote)?;
    let sealed = text.as_deref().and_then(|text| {
        let name = places.file.map(super::name_of);
        session_view::manifest_of(text, name.as_deref(), places.key.as_ref())
    });
    file.map(host::Output::finish).transpose()?;
    match (manifest, sealed, &places.manifest) {
        (Some(output), Some(sealed), _) => output.finish_with(sealed.as_bytes())?,
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

/// What came of an extract.
struct Received {
    said: Said,
    /// As the service has sealed it, and of these bytes; `None` where it keeps none.
    manifest: Option<String>,
}

/// Why it did not.
enum Failed {
    Remote(Error),
    Output(io::Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Remote(error)
    }
}

/// An extract on its way.
struct Download<'a> {
    there: &'a There,
    parameters: Vec<(&'static str, String)>,
    out: &'a mut dyn Write,
    hasher: Hasher,
    bytes: u64,
    /// What relative times of the query count from.
    now_ns: Option<i64>,
}

impl<'a> Download<'a> {
    fn new(
        there: &'a There,
        parameters: Vec<(&'static str, String)>,
        out: &'a mut dyn Write,
    ) -> Self {
        Self { there, parameters, out, hasher: Hasher::default(), bytes: 0, now_ns: None }
    }

    /// All of it, over as many connections as that takes.
    fn all(&mut self) -> Result<Received, Failed> {
        let mut progress = Progress::new("extract");
        let (mut attempts, mut before) = (0, 0);
        let received = loop {
            let error = match self.part(&mut progress) {
                Err(Failed::Remote(error)) if error.is_passing() => error,
                other => break other,
            };
            if self.bytes > before {
                (attempts, before) = (0, self.bytes);
            }
            // Without a byte it was not begun: that is for the user to try again.
            if self.now_ns.is_none() || attempts == ATTEMPTS {
                break Err(error.into());
            }
            let pause = PAUSE.saturating_mul(1 << attempts);
            attempts += 1;
            let part = ByteSize(self.bytes);
            progress.say(&format!("{error}; going on behind the {part} that are there"));
            if let Err(stopped) = self.pause(pause) {
                break Err(stopped.into());
            }
        };
        progress.finish();
        received
    }

    /// Over one connection.
    fn part(&mut self, progress: &mut Progress) -> Result<Received, Failed> {
        let mut parameters = self.parameters.clone();
        if self.bytes > 0 {
            parameters.push(("offset", self.bytes.to_string()));
            parameters.push(("sha256", units::hex(&self.hasher.clone().finish().sha256)));
        }
        parameters.extend(self.now_ns.map(|now_ns| ("now_ns", now_ns.to_string())));
        let mut answer = self.there.get("/api/v1/extract", &parameters, PCAPNG)?;
        while let Some(bytes) = answer.next()? {
            self.now_ns = self.now_ns.or(answer.now_ns());
            self.out.write_all(&bytes).map_err(Failed::Output)?;
            self.hasher.update(&bytes);
            self.bytes = self.bytes.saturating_add(units::number::to_u64(bytes.len()));
            progress.text(&|| ByteSize(self.bytes).to_string());
        }
        self.out.flush().map_err(Failed::Output)?;
        let id = answer.id()?.to_owned();
        let said = self.there.said(&id, None).map_err(forgotten)?;
        let manifest = match self.there.service().manifest(&id) {
            Ok(text) => Some(self.compared(text)?),
            Err(error) if error.problem().is_some_and(|it| it.word() == "not-found") => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Received { said, manifest })
    }

    /// The manifest, if it is sealed and of the bytes that came.
    fn compared(&self, text: String) -> Result<String, Error> {
        let hashes = self.hasher.clone().finish();
        let is_it = parse_manifest(&text).is_ok_and(|manifest| {
            let is_sealed = session_view::signed_by(&manifest, None).is_ok();
            let summary = match &*manifest.outputs {
                [output] => &output.summary,
                _ => return false,
            };
            is_sealed
                && summary.bytes == self.bytes
                && (summary.sha256, summary.blake3) == (hashes.sha256, hashes.blake3)
        });
        let why = "its manifest is not that of the bytes that came";
        if is_it { Ok(text) } else { Err(self.there.unlike(why)) }
    }

    /// The user may end it.
    fn pause(&self, time: Duration) -> Result<(), Error> {
        let until_ns = SystemClock.boottime_ns().saturating_add(units::nanos(time));
        while SystemClock.boottime_ns() < until_ns {
            if self.there.service().is_stopped() {
                return Err(Error::Stopped);
            }
            SystemClock.sleep_until(SystemClock.boottime_ns().saturating_add(LOOK_NS));
        }
        Ok(())
    }
}

/// A service that was started anew knows no answer of the one before: that is as if it had broken
/// off at the last byte.
fn forgotten(error: Error) -> Error {
    match error {
        Error::Problem { origin, problem } if problem.word() == "not-found" => {
            Error::Broken { origin, why: problem.to_string() }
        }
        other => other,
    }
}
