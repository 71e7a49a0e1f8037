//! What the service is given, and what of it is refused before anything listens.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

use people::{Origin, RelyingParty};

use crate::tls::Tls;
use crate::{Error, WriteLine};

/// Everything that the service is given.
#[derive(Clone, Debug)]
pub struct Config {
    /// Any member of each volume.
    pub volumes: Vec<PathBuf>,
    /// Where index files are cached, if not in the user's cache.
    pub index_dir: Option<PathBuf>,
    /// A file of private keys, for volumes that are encrypted.
    pub identity: Option<PathBuf>,
    /// Where the interface is.
    pub listen: SocketAddr,
    /// The socket that listens there, where this program was started with one.
    pub handed: Option<host::HandedListener>,
    /// Where Stenographer's clients are answered.
    pub stenographer: Option<SocketAddr>,
    /// Credentials.
    pub token_file: Option<PathBuf>,
    /// Who may log in by name and password; nobody without it.
    pub people: Option<Staff>,
    /// Settings of an identity provider at which people may log in, too.
    pub provider: Option<PathBuf>,
    /// Where browsers find the page; without it at this machine, if it listens there.
    pub public_url: Option<Origin>,
    /// Certificate and key of the server.
    pub tls: Option<Tls>,
    /// Who signs certificates of clients, in PEM.
    pub client_ca: Option<PathBuf>,
    /// Which of them are revoked, in PEM.
    pub client_crl: Option<PathBuf>,
    /// Where requests are put down; without it they are only in the log.
    pub audit: Option<::audit::Files>,
    /// Where packets are put aside; nowhere without it.
    pub holds: Option<Holds>,
    /// The file of tags, which need not be there; none are kept without it.
    pub tags: Option<PathBuf>,
    /// The file of requests for extracts that somebody else approves, which need not be there; none
    /// are taken without it.
    pub approvals: Option<PathBuf>,
    /// Reports of `qualify --json` about the disks of the volumes, to be shown.
    pub qualifications: Vec<PathBuf>,
    /// The program that decodes packets for who may see their payload; none does without it.
    pub tshark: Option<PathBuf>,
    /// The process without which it ends in order: who keeps it running, and starts another one.
    pub parent: Option<Parent>,
    /// What one request, and all of them, may take.
    pub bounds: Bounds,
    /// The hidden verb of this program that calls `worker::work`.
    pub worker_verb: &'static str,
    /// What a worker gets of this process' environment.
    pub environment: Vec<(&'static str, String)>,
    /// Version of this program.
    pub version: &'static str,
    /// Takes lines of the log.
    pub write_line: WriteLine,
}

/// A process that lives: its number, and when it was started, for a number is used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parent {
    /// Its number.
    pub process: u32,
    /// In the kernel's ticks since boot.
    pub started: u64,
}

impl Parent {
    /// This process, for those that it starts; `None` where the kernel does not say.
    pub fn own() -> Option<Self> {
        let process = host::own_process();
        let started = host::processes::Stat::of(process)?.started;
        Some(Self { process, started })
    }

    /// Whether it has ended.
    pub(crate) fn is_gone(self) -> bool {
        let found = host::processes::Stat::of(self.process);
        found.is_none_or(|found| !found.is_alive || found.started != self.started)
    }
}

/// `PROCESS.STARTED`.
impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.process, self.started)
    }
}

impl FromStr for Parent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('.').and_then(|(process, started)| {
            Some(Self { process: process.parse().ok()?, started: started.parse().ok()? })
        });
        numbers.ok_or("a process and when it was started")
    }
}

/// The people of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Staff {
    /// Their file, which need not be there.
    pub file: PathBuf,
    /// Roles besides those that are always there.
    pub roles: Vec<people::Role>,
}

/// A folder of holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holds {
    /// The folder, which has to be there.
    pub folder: PathBuf,
    /// Bytes that all holds there may take.
    pub size_max: u64,
}

/// What one request, and all of them, may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Requests that are answered at the same time; each is a process.
    pub workers: usize,
    /// Requests that wait for that.
    pub queue: usize,
    /// Connections that are open at the same time.
    pub connections: usize,
    /// How long an answer may take.
    pub time: Duration,
    /// Bytes that an answer may have.
    pub answer_bytes: u64,
    /// Address space of a worker.
    pub memory_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            workers: 4,
            queue: 64,
            connections: 512,
            time: Duration::from_mins(15),
            answer_bytes: 64 << 30,
            memory_bytes: 8 << 30,
        }
    }
}

impl Config {
    /// Where browsers find the page: at the address that is given, or else at the name that they
    /// know for this machine.
    pub(crate) fn origin(&self) -> Option<Origin> {
        let here = || {
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            let is_here = self.listen.ip().is_loopback() && self.listen.port() != 0;
            let origin = format!("{scheme}://localhost:{}", self.listen.port()).parse().ok();
            origin.filter(|_| is_here)
        };
        self.public_url.clone().or_else(here)
    }

    /// Whom keys of people are made for.
    pub(crate) fn party(&self) -> Option<RelyingParty> {
        self.origin().and_then(RelyingParty::new)
    }

    /// Nothing listens without a credential, and beyond the loopback nothing without TLS.
    ///
    /// # Errors
    /// With the first thing that does not fit.
    pub fn check(&self) -> Result<(), Error> {
        let has_people = self.people.is_some();
        if self.token_file.is_none() && self.client_ca.is_none() && !has_people {
            return Err(Error::NoCredential);
        }
        if self.tls.is_none() {
            if !self.listen.ip().is_loopback() {
                return Err(Error::NoTls(self.listen));
            }
            if self.client_ca.is_some() {
                return Err(Error::NeedsTls("--client-ca"));
            }
            if self.stenographer.is_some() {
                return Err(Error::NeedsTls("--stenographer"));
            }
        }
        if self.approvals.is_some() && self.audit.is_none() {
            return Err(Error::NeedsAudit);
        }
        if self.provider.is_some() && !has_people {
            return Err(Error::NeedsPeople);
        }
        if self.provider.is_some() && self.origin().is_none() {
            return Err(Error::NeedsPublicUrl);
        }
        if self.stenographer.is_some() && self.client_ca.is_none() {
            return Err(Error::NeedsClientCa);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(listen: &str) -> Config {
        Config {
            volumes: Vec::new(),
            index_dir: None,
            identity: None,
            listen: listen.parse().unwrap(),
            handed: None,
            stenographer: None,
            token_file: Some("tokens".into()),
            people: None,
            provider: None,
            public_url: None,
            tls: None,
            client_ca: None,
            client_crl: None,
            audit: None,
            holds: None,
            tags: None,
            approvals: None,
            qualifications: Vec::new(),
            tshark: None,
            parent: None,
            bounds: Bounds::default(),
            worker_verb: "answer",
            environment: Vec::new(),
            version: "0.0.0",
            write_line: |_| true,
        }
    }

    #[test]
    fn a_process_that_ended_is_gone_and_so_is_one_of_an_earlier_number() {
        let own = Parent::own().unwrap();
        assert_eq!(own.to_string().parse(), Ok(own));
        assert!(!own.is_gone());
        assert!(Parent { started: own.started + 1, ..own }.is_gone());
        assert!(Parent { process: u32::MAX, started: 1 }.is_gone());
        assert!("1".parse::<Parent>().is_err());
    }

    #[test]
    fn keys_are_made_for_the_address_of_the_page() {
        let of = |config: Config| config.party().map(|party| party.origin().to_owned());
        assert_eq!(of(config("127.0.0.1:8420")).unwrap(), "http://localhost:8420");
        assert_eq!(of(config("127.0.0.1:0")), None);
        assert_eq!(of(config("192.0.2.1:443")), None);
        let tls = Some(Tls { certificate: "c".into(), key: "k".into() });
        assert_eq!(of(Config { tls, ..config("[::1]:443") }).unwrap(), "https://localhost");
        let public_url = "https://recorder.example".parse().ok();
        let at = of(Config { public_url, ..config("192.0.2.1:443") });
        assert_eq!(at.unwrap(), "https://recorder.example");
        let public_url = "https://192.0.2.1".parse().ok();
        assert_eq!(of(Config { public_url, ..config("192.0.2.1:443") }), None);
    }

    #[test]
    fn nothing_listens_beyond_the_loopback_without_tls_or_anywhere_without_a_credential() {
        for listen in ["127.0.0.1:1", "[::1]:1", "127.9.9.9:1"] {
            assert!(config(listen).check().is_ok(), "{listen}");
        }
        let tls = Some(Tls { certificate: "c".into(), key: "k".into() });
        for listen in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "[::ffff:127.0.0.1]:1"] {
            assert!(matches!(config(listen).check(), Err(Error::NoTls(_))), "{listen}");
            assert!(Config { tls: tls.clone(), ..config(listen) }.check().is_ok(), "{listen}");
            let none = Config { token_file: None, tls: tls.clone(), ..config(listen) };
            assert!(matches!(none.check(), Err(Error::NoCredential)), "{listen}");
        }
        let asked = Config { approvals: Some("requests".into()), ..config("127.0.0.1:1") };
        assert!(matches!(asked.check(), Err(Error::NeedsAudit)));
        let door = Config { stenographer: "127.0.0.1:2".parse().ok(), ..config("127.0.0.1:1") };
        assert!(matches!(door.check(), Err(Error::NeedsTls(_))));
        let door = Config { tls, ..door };
        assert!(matches!(door.check(), Err(Error::NeedsClientCa)));
        assert!(Config { client_ca: Some("ca".into()), ..door }.check().is_ok());
    }
}
