//! What the service over volumes is given.

use core::time::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use host::HandedListener;
use server::{AuditFiles, Bounds, Config, Holds, Origin, Parent, Role, Staff, Tls};

use crate::arguments;
use crate::progress::try_say;

/// The hidden verb of a process that answers one request.
const WORKER: &str = "answer";
/// What such a process gets of our environment: where caches and sockets of recorders are.
const HANDED_ON: [&str; 4] = ["HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR"];

/// Flags of the service; keys of a configuration, too.
#[derive(Debug, Args)]
pub(crate) struct ServingFlags {
    /// The volumes: any member of each
    #[arg(required_unless_present = "config", value_name = "VOLUME")]
    pub(super) volumes: Vec<PathBuf>,
    /// Run the recorders and the API that this file lists, and start again what ends; SIGHUP has it
    /// read again. docs/config.md has its keys
    #[arg(long, value_name = "FILE", exclusive = true)]
    pub(super) config: Option<PathBuf>,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8420")]
    #[arg(value_parser = arguments::address)]
    pub(super) listen: SocketAddr,
    /// Credentials: a line each, NAME:SCOPES:SHA-256, with :EXPIRY and a filter where there are
    /// any, as `serve token create` writes them. They are read again when the file has changed
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// People who log in at the page by name and password, with a second factor if they like. The
    /// service makes the file; without an administrator it shows a link that makes the first one
    #[arg(long, value_name = "FILE")]
    pub(super) people_file: Option<PathBuf>,
    /// A role besides administrator, analyst and viewer: what it permits, and a query that is asked
    /// besides whatever is asked; may be given several times, as in --role 'desk=sessions port 53'
    #[arg(long, value_name = "NAME=SCOPES[ FILTER]", requires = "people_file")]
    pub(super) role: Vec<Role>,
    /// An `OpenID` Connect provider at which people log in, too: its settings (docs/service.md)
    #[arg(long, value_name = "FILE", requires = "people_file")]
    pub(super) provider: Option<PathBuf>,
    /// The page's address in browsers, for keys and the provider; on the loopback
    /// http://localhost:PORT without it
    #[arg(long, value_name = "URL")]
    pub(super) public_url: Option<Origin>,
    /// The server's certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,
    /// Accept certificates of clients that this CA has signed, in PEM
    #[arg(long, value_name = "FILE")]
    pub(super) client_ca: Option<PathBuf>,
    /// Refuse those that this list of the CA revokes (CRL), in PEM. It is read again when it has
    /// changed; one that is past its next update refuses all
    #[arg(long, value_name = "FILE", requires = "client_ca")]
    pub(super) client_crl: Option<PathBuf>,
    /// Answer Stenographer's programs here: POST /query, with a certificate of the client
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address)]
    pub(super) stenographer: Option<SocketAddr>,
    /// Write a line for each request to this file, a chain that `audit verify` checks. Without its
    /// line a request is refused. Without this file requests are only in the log
    #[arg(long, value_name = "FILE")]
    pub(super) audit: Option<PathBuf>,
    /// A file of the audit that is so large gets the number of its last line as the end of its
    /// name, and the next one begins
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = file_size)]
    pub(super) audit_size: u64,
    /// So many such files are kept; then the oldest is removed, and a line says so
    #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one)]
    pub(super) audit_files: usize,
    /// Where holds are kept that are made over the network, best on another disk
    #[arg(long, value_name = "DIR")]
    pub(super) hold_dir: Option<PathBuf>,
    /// Most bytes of all holds there
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = arguments::size)]
    pub(super) hold_size: u64,
    /// Where tags of sessions are kept that are made over the network. The service makes the file
    #[arg(long, value_name = "FILE")]
    pub(super) tags_file: Option<PathBuf>,
    /// Where requests for extracts are kept that somebody else has to approve. The service makes
    /// the file. It needs --audit
    #[arg(long, value_name = "FILE")]
    pub(super) requests_file: Option<PathBuf>,
    /// A report of `qualify --json` about a disk of the volumes, to be shown with them; may be
    /// given several times
    #[arg(long, value_name = "FILE")]
    pub(super) qualification: Vec<PathBuf>,
    /// Decode packets by this program, tshark, for who may see their payload. It runs without
    /// rights, files, network and other processes, or not at all
    #[arg(long, value_name = "PROGRAM")]
    pub(super) tshark: Option<PathBuf>,
    /// Where index files are cached
    #[arg(long, value_name = "DIR")]
    pub(super) index_dir: Option<PathBuf>,
    /// The file with the private key of a recipient, for encrypted volumes: whoever may ask is then
    /// answered from them
    #[arg(long, value_name = "FILE")]
    pub(super) identity: Option<PathBuf>,
    /// Requests that are answered at the same time; each is a process
    #[arg(long, value_name = "N", default_value_t = Bounds::default().workers)]
    #[arg(value_parser = workers)]
    pub(super) workers: usize,
    /// Connections that are open at the same time
    #[arg(long, value_name = "N", default_value_t = Bounds::default().connections)]
    #[arg(value_parser = connections)]
    pub(super) connections: usize,
    /// How long an answer may take; it says when it was cut
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = arguments::duration)]
    pub(super) max_time: Duration,
    /// Bytes that an answer may have; it says when it was cut
    #[arg(long, value_name = "SIZE", default_value = "64G", value_parser = arguments::size)]
    pub(super) max_bytes: u64,
    /// End in order when this process has ended
    #[arg(long, value_name = "PROCESS.STARTED", hide = true)]
    pub(super) parent: Option<Parent>,
}

impl ServingFlags {
    /// The service that they ask for, at this socket if there is one.
    pub(super) fn config_of(&self, handed: Option<HandedListener>) -> Config {
        let variable = |name| Some((name, std::env::var(name).ok()?));
        let usual = Bounds::default();
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        Config {
            volumes: self.volumes.clone(),
            index_dir: self.index_dir.clone(),
            identity: self.identity.clone(),
            // It listens already, by the same rules.
            listen: handed.as_ref().map_or(self.listen, HandedListener::address),
            handed,
            stenographer: self.stenographer,
            token_file: self.token_file.clone(),
            people: self.people_file.clone().map(|file| Staff { file, roles: self.role.clone() }),
            provider: self.provider.clone(),
            public_url: self.public_url.clone(),
            tls: tls.map(|(certificate, key)| Tls { certificate, key }),
            client_ca: self.client_ca.clone(),
            client_crl: self.client_crl.clone(),
            audit: self.audit.clone().map(|path| AuditFiles {
                path,
                file_bytes: self.audit_size,
                files: self.audit_files,
            }),
            holds: self.hold_dir.clone().map(|folder| Holds { folder, size_max: self.hold_size }),
            tags: self.tags_file.clone(),
            approvals: self.requests_file.clone(),
            qualifications: self.qualification.clone(),
            tshark: self.tshark.clone(),
            parent: self.parent,
            bounds: Bounds {
                workers: self.workers,
                connections: self.connections,
                time: self.max_time,
                answer_bytes: self.max_bytes,
                ..usual
            },
            worker_verb: WORKER,
            environment: HANDED_ON.into_iter().filter_map(variable).collect(),
            version: env!("CARGO_PKG_VERSION"),
            write_line: try_say,
        }
    }
}

/// A file smaller than this would be full of first lines.
fn file_size(text: &str) -> Result<u64, String> {
    let size = arguments::size(text)?;
    Some(size).filter(|size| *size >= 64 << 10).ok_or_else(|| "64K or more".to_owned())
}

/// Each is a process that may use 8 GiB.
fn workers(text: &str) -> Result<usize, String> {
    between(text, 1024)
}

/// Each is a descriptor.
fn connections(text: &str) -> Result<usize, String> {
    between(text, 65_536)
}

fn between(text: &str, most: usize) -> Result<usize, String> {
    let number = at_least_one(text)?;
    (number <= most).then_some(number).ok_or_else(|| format!("a whole number from 1 to {most}"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "a whole number above 0".to_owned())
}
