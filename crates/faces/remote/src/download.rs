//! An extract of a service: its bytes as they come, hashed on the way, and compared with its
//! manifest before the file appears. Where the connection breaks, it goes on behind what is there.

use core::time::Duration;
use std::io::{self, Write};

use evidence::TrustedKeys;
use extract::Hasher;
use host::SystemClock;
use manifest::parse_manifest;
use units::{ByteSize, Clock as _, Sleep as _};

use crate::documents::Said;
use crate::there::There;
use crate::{Error, PCAPNG};

/// So often in a row it is tried to go on, without a further byte.
const ATTEMPTS: u32 = 5;
/// Before the first of them; then twice as long each.
const PAUSE: Duration = Duration::from_millis(500);
/// The user may have had enough meanwhile.
const LOOK_NS: i64 = 50_000_000;

/// What came of an extract.
#[derive(Debug)]
pub struct Received {
    /// What is missing from it.
    pub said: Said,
    /// As the service has sealed it, and of these bytes; `None` where it keeps none.
    pub manifest: Option<String>,
}

/// Why it did not.
#[derive(Debug)]
pub enum Failed {
    /// The service, or the way to it.
    Remote(Error),
    /// Where its bytes go.
    Output(io::Error),
}

/// Who hears how an extract goes on.
pub trait Telling {
    /// So many bytes are there.
    fn bytes(&mut self, so_far: u64);
    /// A line about what went wrong, and is tried again.
    fn say(&mut self, line: &str);
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Remote(error)
    }
}

/// An extract on its way.
#[expect(missing_debug_implementations, reason = "where bytes go has none")]
pub struct Download<'a> {
    there: &'a There,
    parameters: Vec<(&'static str, String)>,
    out: &'a mut dyn Write,
    hasher: Hasher,
    /// Bytes that came so far.
    bytes: u64,
    /// What relative times of the query count from.
    now_ns: Option<i64>,
}

impl<'a> Download<'a> {
    /// Nothing is sent yet. Its bytes go out as they come.
    pub fn new(
        there: &'a There,
        parameters: Vec<(&'static str, String)>,
        out: &'a mut dyn Write,
    ) -> Self {
        Self { there, parameters, out, hasher: Hasher::default(), bytes: 0, now_ns: None }
    }

    /// Bytes that came so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All of it, over as many connections as that takes.
    ///
    /// # Errors
    /// When it has no end, is not what its manifest says, or cannot be written.
    pub fn all(&mut self, telling: &mut dyn Telling) -> Result<Received, Failed> {
        let (mut attempts, mut before) = (0, 0);
        loop {
            let error = match self.part(telling) {
                Err(Failed::Remote(error)) if error.is_passing() => error,
                other => return other,
            };
            if self.bytes > before {
                (attempts, before) = (0, self.bytes);
            }
            // Without a byte it was not begun: that is for the user to try again.
            if self.now_ns.is_none() || attempts == ATTEMPTS {
                return Err(error.into());
            }
            let pause = PAUSE.saturating_mul(1 << attempts);
            attempts += 1;
            let part = ByteSize(self.bytes);
            telling.say(&format!("{error}; going on behind the {part} that are there"));
            self.pause(pause)?;
        }
    }

    /// Over one connection.
    fn part(&mut self, telling: &mut dyn Telling) -> Result<Received, Failed> {
        let mut parameters = self.parameters.clone();
        if self.bytes > 0 {
            parameters.push(("offset", self.bytes.to_string()));
            parameters.push(("sha256", units::hex(&self.hasher.clone().finish().sha256)));
        }
        parameters.extend(self.now_ns.map(|now_ns| ("now_ns", now_ns.to_string())));
        let mut answer = self.there.get("/api/v1/extract", &parameters, PCAPNG)?;
        while let Some(bytes) = answer.piece()? {
            self.now_ns = self.now_ns.or(answer.now_ns());
            self.out.write_all(&bytes).map_err(Failed::Output)?;
            self.hasher.update(&bytes);
            self.bytes = self.bytes.saturating_add(units::number::to_u64(bytes.len()));
            telling.bytes(self.bytes);
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
            let nobody = TrustedKeys::default();
            let is_sealed = manifest
                .sealed
                .is_some_and(|(text, seal)| seal.check(text.as_bytes(), &nobody).is_ok());
            let [output] = &*manifest.outputs else { return false };
            is_sealed
                && output.bytes == self.bytes
                && (output.sha256, output.blake3) == (hashes.sha256, hashes.blake3)
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
