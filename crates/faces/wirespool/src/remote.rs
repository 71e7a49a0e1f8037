//! The volumes of a service in the place of those of this machine (`--remote`): its flags, which
//! volume is meant, and what its errors mean here.

use core::time::Duration;
use std::path::{Path, PathBuf};

use ::remote::{Answer, Error, NoOrigin, Said, Service, Settings, Trust, Volume};
use anyhow::Context as _;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use host::StopFlag;
use zeroize::Zeroizing;

use crate::answered::Answered;
use crate::arguments;
use crate::failure::{Usage, WrongQuery};

/// Has the token where no file is named.
const TOKEN: &str = "WIRESPOOL_TOKEN";

/// Flags of the verbs that can ask a service.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over the network")]
pub(crate) struct RemoteFlags {
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
pub(crate) fn volume_or_word() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// What the words of a command line are about.
pub(crate) struct Asked {
    pub(crate) place: Place,
    /// Without the volume.
    pub(crate) words: Vec<String>,
}

/// Where a volume is.
pub(crate) enum Place {
    Here(PathBuf),
    There(Box<There>),
}

/// A volume of a service.
#[derive(Debug)]
pub(crate) struct There {
    service: Service,
    volume: Volume,
    /// What is asked of it.
    query: String,
}

impl RemoteFlags {
    /// A service is asked.
    pub(crate) fn is_given(&self) -> bool {
        self.remote.is_some()
    }

    /// The volume that is meant, and the words behind it. With a service the first word names a
    /// volume of it, or is one of the others.
    pub(crate) fn asked(&self, volume: Option<&Path>, words: &[String]) -> anyhow::Result<Asked> {
        let Some(url) = &self.remote else {
            let volume = volume.expect("it is required where no service is named");
            if volume.as_os_str().is_empty() {
                return Err(Usage("which volume? Name a file or a block device".to_owned()).into());
            }
            return Ok(Asked { place: Place::Here(volume.to_path_buf()), words: words.to_vec() });
        };
        let service = self.service(url)?;
        let volumes = service.whoami().map_err(of_remote)?.volumes;
        let first = volume.map(|path| path.to_string_lossy().into_owned());
        let all = || first.iter().chain(words).cloned().collect::<Vec<String>>();
        let is_it =
            |it: &&Volume| Some(&it.name) == first.as_ref() || Some(&it.id) == first.as_ref();
        let (volume, words) = match (volumes.iter().find(is_it), &*volumes) {
            (Some(named), _) => (named.clone(), words.to_vec()),
            (None, [only]) => (only.clone(), all()),
            (None, _) => return Err(which(&service, &volumes, first.as_deref()).into()),
        };
        let there = There { service, volume, query: String::new() };
        Ok(Asked { place: Place::There(Box::new(there)), words })
    }

    fn service(&self, url: &str) -> anyhow::Result<Service> {
        let origin = url.parse().map_err(|error: NoOrigin| of_remote(error.into()))?;
        let certificate = self.remote_cert.clone().zip(self.remote_key.clone());
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let trust = Trust {
            ca: self.remote_ca.clone(),
            certificate,
            token_file: self.remote_token_file.clone(),
            token: token.map(Zeroizing::new),
        };
        let stop = StopFlag::install()?;
        let settings = Settings {
            trust,
            silence: self.remote_timeout,
            program: concat!("wirespool/", env!("CARGO_PKG_VERSION")),
            is_stopped: Box::new(move || stop.is_set()),
        };
        Service::new(origin, settings).map_err(of_remote)
    }
}

/// Which volume is meant is not said.
fn which(service: &Service, volumes: &[Volume], first: Option<&str>) -> Usage {
    let names: Vec<String> =
        volumes.iter().map(|volume| page::safe::printable(&volume.name)).collect();
    let has = match names.join(", ") {
        names if names.is_empty() => "none".to_owned(),
        names => names,
    };
    let origin = service.origin();
    Usage(match first {
        Some(first) => {
            format!("{:?} is no volume of {origin}, which has: {has}", page::safe::printable(first))
        }
        None => format!("which volume? {origin} has: {has}"),
    })
}

impl There {
    /// The same, which is asked this.
    pub(crate) fn with_query(self, query: String) -> Self {
        Self { query, ..self }
    }

    /// Asks for what stands at a path.
    pub(crate) fn get(
        &self,
        path: &str,
        parameters: &[(&str, String)],
        media_type: &'static str,
    ) -> Result<Answer<'_>, Error> {
        let mut all = vec![("volume", self.volume.id.clone()), ("query", self.query.clone())];
        all.extend(parameters.iter().cloned());
        self.service.get(path, &all, media_type)
    }

    /// What the service says of an answer of which so many were received.
    pub(crate) fn said(&self, answer: &str, count: Option<u64>) -> Result<Said, Error> {
        let said = self.service.said(answer)?;
        match count {
            Some(count) if said.count != Some(count) => Err(self.unlike(&format!(
                "{count} came, and it says that it sent {}",
                said.count.map_or_else(|| "an unknown number".to_owned(), |it| it.to_string())
            ))),
            _ => Ok(said),
        }
    }

    /// The statement of an answer.
    pub(crate) fn answered(&self, said: Said) -> Result<Answered, Error> {
        let answered = said.statement.and_then(Answered::of_statement);
        answered.ok_or_else(|| self.unlike("its statement is none"))
    }

    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    pub(crate) fn unlike(&self, why: &str) -> Error {
        let why = page::safe::printable(why);
        Error::Unlike { origin: self.service.origin().clone(), why }
    }

    /// Refuses words behind the volume: of a service with one volume they are no name of it.
    pub(crate) fn named_by_all(self, words: &[String]) -> Result<Self, Usage> {
        match words.first() {
            None => Ok(self),
            Some(word) => {
                Err(which(&self.service, core::slice::from_ref(&self.volume), Some(word)))
            }
        }
    }

    /// How the volume stands.
    pub(crate) fn status(&self) -> anyhow::Result<(upkeep::Status, Option<String>)> {
        let volume = self.service.status(&self.volume.id).map_err(of_remote)?;
        volume_view::read_status(volume)
            .with_context(|| format!("{} says of its volume what is none", self.service.origin()))
    }
}

/// An error of a service, by what it means: a wrong query and wrong words are the user's.
pub(crate) fn of_remote(error: Error) -> anyhow::Error {
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
pub(crate) fn refused(flag: &str) -> Usage {
    Usage(format!("{flag} has no meaning with --remote: see docs/service.md"))
}

/// The name of the first flag that was given.
pub(crate) fn first_given(flags: &[(bool, &'static str)]) -> Option<&'static str> {
    flags.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name)
}
