//! The volumes of a service in the place of those of this machine (`--remote`): its flags, which
//! volume is meant, and what its errors mean here.

use core::time::Duration;
use std::path::{Path, PathBuf};

use ::found::Found;
use ::remote::{Ended, Error, NoOrigin, NoVolume, Said, Service, Settings, There, Trust, Wanted};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use host::StopFlag;
use zeroize::Zeroizing;

use crate::answered::{Answered, warn_of_left_out};
use crate::arguments;
use crate::failure::{Usage, WrongQuery};

/// Has the token where no file is named.
const TOKEN: &str = "WIRESPOOL_TOKEN";
/// Name and version of this program, as it tells services.
pub const PROGRAM: &str = concat!("wirespool/", env!("CARGO_PKG_VERSION"));

/// The token that the environment has.
pub fn token() -> Option<Zeroizing<String>> {
    std::env::var(TOKEN).ok().filter(|token| !token.is_empty()).map(Zeroizing::new)
}

/// Flags of the verbs that can ask a service.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over the network")]
pub struct RemoteFlags {
    /// Ask the service (wirespool serve) at `https://HOST[:PORT]`. VOLUME is one that it names, and
    /// may be left out where it has one
    #[arg(long, value_name = "URL")]
    remote: Option<String>,
    /// The token for it, in a file that only its owner may read; else the environment's
    /// `WIRESPOOL_TOKEN` is taken
    #[arg(long, value_name = "FILE", requires = "remote")]
    remote_token_file: Option<PathBuf>,
    /// The certificates to believe, in PEM, instead of the system's
    #[arg(long, value_name = "FILE", requires = "remote")]
    remote_ca: Option<PathBuf>,
    /// A certificate to show, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["remote", "remote_key"])]
    remote_cert: Option<PathBuf>,
    /// Its key, in a file that only its owner may read
    #[arg(long, value_name = "FILE", requires = "remote_cert")]
    remote_key: Option<PathBuf>,
    /// Give up when it says nothing for so long; a search that finds nothing is silent, too
    #[arg(long, value_name = "TIME", requires = "remote", default_value = "16m",
        value_parser = arguments::duration)]
    remote_timeout: Duration,
}

/// A volume, or the first word where a service is asked: that may be an empty query.
pub fn volume_or_word() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// What the words of a command line are about.
#[derive(Debug)]
pub struct Asked {
    /// The volume.
    pub place: Place,
    /// Without the volume.
    pub words: Vec<String>,
}

/// Where a volume is.
#[derive(Debug)]
pub enum Place {
    /// On this machine.
    Here(PathBuf),
    /// A service has it.
    There(Box<There>),
}

impl RemoteFlags {
    /// A service is asked.
    pub fn is_given(&self) -> bool {
        self.remote.is_some()
    }

    /// The volume that is meant, and the words behind it. With a service the first word names a
    /// volume of it, or is one of the others.
    pub fn asked(&self, volume: Option<&Path>, words: &[String]) -> anyhow::Result<Asked> {
        let Some(url) = &self.remote else {
            let volume = volume.expect("it is required where no service is named");
            if volume.as_os_str().is_empty() {
                return Err(Usage("which volume? Name a file or a block device".to_owned()).into());
            }
            return Ok(Asked { place: Place::Here(volume.to_path_buf()), words: words.to_vec() });
        };
        let first = volume.map(|path| path.to_string_lossy().into_owned());
        let chosen = There::choose(self.service(url)?, first.as_deref(), words);
        let (there, words) = chosen.map_err(not_named)?;
        Ok(Asked { place: Place::There(Box::new(there)), words })
    }

    fn service(&self, url: &str) -> anyhow::Result<Service> {
        let origin = url.parse().map_err(|error: NoOrigin| of_remote(error.into()))?;
        let certificate = self.remote_cert.clone().zip(self.remote_key.clone());
        let trust = Trust {
            ca: self.remote_ca.clone(),
            certificate,
            token_file: self.remote_token_file.clone(),
            token: token(),
        };
        let stop = StopFlag::install()?;
        let settings = Settings {
            trust,
            silence: self.remote_timeout,
            program: PROGRAM,
            is_stopped: Box::new(move || stop.is_set()),
        };
        Service::new(origin, settings).map_err(of_remote)
    }
}

/// Which volume is meant is the user's to say.
pub fn not_named(error: NoVolume) -> anyhow::Error {
    match error {
        NoVolume::Service(error) => of_remote(error),
        error => Usage(error.to_string()).into(),
    }
}

/// Calls `take` with the sessions of a volume there.
pub fn sessions(
    there: &There,
    wanted: &Wanted,
    take: &mut dyn FnMut(&Found) -> anyhow::Result<()>,
) -> anyhow::Result<Answered> {
    let said =
        ::remote::sessions(there, wanted, &mut |found| take(&found)).map_err(
            |ended| match ended {
                Ended::Service(error) => of_remote(error),
                Ended::Taker(error) => error,
            },
        )?;
    let left_out = said.statement.as_ref().and_then(|statement| statement.left_out);
    if let Some(left_out) = left_out.filter(|count| *count > 0) {
        warn_of_left_out(left_out);
    }
    answered(there, said)
}

/// The statement of an answer.
pub fn answered(there: &There, said: Said) -> anyhow::Result<Answered> {
    let answered = said.statement.and_then(Answered::of_statement);
    answered.ok_or_else(|| of_remote(there.unlike("its statement is none")))
}

/// An error of a service, by what it means: a wrong query and wrong words are the user's.
pub fn of_remote(error: Error) -> anyhow::Error {
    if matches!(error, Error::Address(_) | Error::TooLong) {
        return Usage(error.to_string()).into();
    }
    let Some(problem) = error.problem() else { return error.into() };
    if let Some(shown) = problem.shown_query() {
        return WrongQuery(shown.to_owned()).into();
    }
    match problem.word() {
        "wrong-parameter" | "too-long" => Usage(error.to_string()).into(),
        _ => error.into(),
    }
}

/// A flag that is about this machine.
pub fn refused(flag: &str) -> Usage {
    Usage(format!("{flag} has no meaning with --remote: see docs/service.md"))
}

/// The name of the first flag that was given.
pub fn first_given(flags: &[(bool, &'static str)]) -> Option<&'static str> {
    flags.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name)
}
