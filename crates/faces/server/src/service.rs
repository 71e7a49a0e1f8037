//! The service from its start to its end.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use host::{StopFlag, SystemClock};
use page::safe;
use tokio::sync::watch;
use tokio::time::sleep;
use units::Clock as _;

use crate::access::Access;
use crate::answers::Answers;
use crate::config::Bounds;
use crate::listen::{Door, Doors, Kind};
use crate::log::Log;
use crate::logins::Logins;
use crate::metrics::{Requests, Statuses};
use crate::problem::Problem;
use crate::question::{Question, What};
use crate::tls::{Clients, acceptor};
use crate::trail::Trail;
use crate::workers::{Room, Workers};
use crate::{Config, Error};

/// Threads that move bytes; whatever takes time is done elsewhere.
const THREADS: usize = 2;
/// Requests that wait are refused after this.
const QUEUE_PATIENCE: Duration = Duration::from_secs(30);
/// Questions about the state of volumes have a queue of their own.
const STATUS_ROOM: Room = Room { running: 2, waiting: 16, patience: Duration::from_secs(10) };
/// What such a question may take.
const STATUS_TIME: Duration = Duration::from_secs(20);
/// A signal is noticed within this.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Answers that are on their way when the service is to end have so long.
const DRAIN: Duration = Duration::from_secs(10);

/// A volume that is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Volume {
    /// The last part of its path, or its id.
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) path: PathBuf,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) volumes: Vec<Volume>,
    pub(crate) access: Access,
    pub(crate) logins: Logins,
    /// Of this program.
    pub(crate) version: &'static str,
    pub(crate) bounds: Bounds,
    pub(crate) workers: Workers,
    pub(crate) status_workers: Workers,
    pub(crate) answers: Answers,
    pub(crate) statuses: Statuses,
    pub(crate) requests: Arc<Requests>,
    pub(crate) log: Arc<Log>,
    pub(crate) trail: Arc<Trail>,
    pub(crate) is_stopping: AtomicBool,
    /// What is wrong with the file of tokens was said.
    pub(crate) has_told_access: Mutex<bool>,
    index_dir: Option<PathBuf>,
}

impl Service {
    fn new(config: &Config) -> Result<Self, Error> {
        let bounds = config.bounds;
        let room =
            Room { running: bounds.workers, waiting: bounds.queue, patience: QUEUE_PATIENCE };
        let log = Arc::new(Log::new(config.write_line));
        let workers = |room| Workers::new(config.worker_verb, config.environment.clone(), room);
        Ok(Self {
            volumes: volumes(&config.volumes)?,
            access: Access::open(config.token_file.clone())?,
            logins: Logins::default(),
            version: config.version,
            bounds,
            workers: workers(room),
            status_workers: workers(STATUS_ROOM),
            answers: Answers::default(),
            statuses: Statuses::default(),
            requests: Arc::default(),
            trail: Arc::new(trail(config, &log)?),
            log,
            is_stopping: AtomicBool::new(false),
            has_told_access: Mutex::default(),
            index_dir: config.index_dir.as_deref().map(absolute).transpose()?,
        })
    }

    /// Reads the credentials again; what is wrong with them is said once.
    pub(crate) fn refresh_access(&self) {
        let refreshed = self.access.refresh();
        let mut has_told = self.has_told_access.lock().unwrap_or_else(PoisonError::into_inner);
        match refreshed {
            Err(error) if !*has_told => {
                *has_told = true;
                self.log.say(&format!("no credential counts until this is mended: {error}"));
            }
            Err(_) => {}
            Ok(is_new) => *has_told &= !is_new,
        }
    }

    /// Whether credentials can be read.
    pub(crate) fn knows_credentials(&self) -> bool {
        !*self.has_told_access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume that is meant: the only one, or the one of this name or id.
    pub(crate) fn volume(&self, named: Option<&str>) -> Result<&Volume, Problem> {
        match (named, &self.volumes[..]) {
            (None, [only]) => Ok(only),
            (None, _) => Err(Problem::wrong_parameter(
                "several volumes are served: volume=NAME says which one (/api/v1/volumes)",
            )),
            (Some(named), volumes) => volumes
                .iter()
                .find(|volume| volume.name == named || volume.id == named)
                .ok_or_else(|| Problem::not_found("a volume of this name is not served")),
        }
    }

    /// A question to a volume, with the limits of this service.
    pub(crate) fn question(&self, volume: &Volume, what: What) -> Question {
        let time = if matches!(what, What::Status) { STATUS_TIME } else { self.bounds.time };
        Question {
            volume: volume.path.clone(),
            index_dir: self.index_dir.clone(),
            what,
            until_ns: SystemClock.boottime_ns().saturating_add(units::nanos(time)),
            memory_bytes: self.bounds.memory_bytes,
        }
    }
}

/// Opens the audit, and says where it stands.
fn trail(config: &Config, log: &Arc<Log>) -> Result<Trail, Error> {
    let Some(files) = config.audit.clone() else {
        log.say("no audit: what is asked is only in this log (--audit FILE)");
        return Ok(Trail::new(None));
    };
    let files = audit::Files { path: absolute(&files.path)?, ..files };
    let program = format!("wirespool {}", config.version);
    let says = Arc::clone(log);
    let audit = audit::Audit::open(files, &program, move |line| says.say(line))?;
    let trail = Trail::new(Some(audit));
    trail.head().into_iter().for_each(|head| log.say(&head));
    Ok(trail)
}

/// Workers begin in the root directory.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    Ok(std::path::absolute(path)?)
}

fn volumes(paths: &[PathBuf]) -> Result<Vec<Volume>, Error> {
    let mut volumes: Vec<Volume> = Vec::new();
    for path in paths {
        let path = absolute(path)?;
        if path.to_str().is_none() {
            return Err(Error::NoText(path));
        }
        let opened = volume::open_superblocks(&path, &[])
            .map_err(|error| upkeep::Error::of_volume(&path, error))?;
        let id = opened.superblock().volume_id.to_string();
        let name = path.file_name().map_or_else(|| id.clone(), |it| it.to_string_lossy().into());
        if volumes.iter().any(|other| other.id == id) {
            return Err(Error::Twice(name));
        }
        // Files of one name in two folders.
        let is_taken = volumes.iter().any(|other| other.name == name);
        let name = if is_taken { id.clone() } else { name };
        volumes.push(Volume { name, id, path });
    }
    Ok(volumes)
}

/// Serves until a signal asks to end; what is on its way then has ten seconds.
///
/// # Errors
/// When it may not or cannot begin: what listens where, credentials, certificates, volumes.
pub fn serve(config: &Config) -> Result<(), Error> {
    config.check()?;
    let stop = StopFlag::install()?;
    let service = Arc::new(Service::new(config)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("serve")
        .enable_all()
        .build()?;
    let (trail, log) = (Arc::clone(&service.trail), Arc::clone(&service.log));
    let result = runtime.block_on(run(config, service, &stop));
    // A worker that the kernel does not end is none to wait for.
    runtime.shutdown_timeout(LOOK_EVERY);
    trail.stop().into_iter().for_each(|head| log.say(&head));
    result
}

async fn run(config: &Config, service: Arc<Service>, stop: &StopFlag) -> Result<(), Error> {
    let tls = |clients| {
        let acceptor = |tls| acceptor(tls, config.client_ca.as_deref(), clients);
        config.tls.as_ref().map(acceptor).transpose()
    };
    let (drain, draining) = watch::channel(false);
    let doors = Doors::new(Arc::clone(&service), config.bounds.connections, draining);
    let door = Door { address: config.listen, tls: tls(Clients::May)?, kind: Kind::Interface };
    let mut open = vec![doors.open(door).await?];
    if let Some(address) = config.stenographer {
        let door = Door { address, tls: tls(Clients::Must)?, kind: Kind::Stenographer };
        open.push(doors.open(door).await?);
    }
    for line in &open {
        service.log.say(line);
    }
    host::tell_manager("READY=1");
    while !stop.is_set() {
        sleep(LOOK_EVERY).await;
    }
    host::tell_manager("STOPPING=1");
    service.is_stopping.store(true, Ordering::Relaxed);
    // Who listens sees it, or has ended.
    drain.send(true).unwrap_or_default();
    let until_ns = SystemClock.boottime_ns().saturating_add(units::nanos(DRAIN));
    while doors.count() > 0 && SystemClock.boottime_ns() < until_ns {
        sleep(LOOK_EVERY).await;
    }
    match doors.count() {
        0 => service.log.say("ended in order"),
        left => service.log.say(&format!(
            "ended; {} still open after {} s",
            page::text::plural(units::number::to_u64(left), "connection"),
            DRAIN.as_secs()
        )),
    }
    Ok(())
}

/// Where a door is open, in a line.
pub(crate) fn open_line(kind: Kind, address: core::net::SocketAddr, has_tls: bool) -> String {
    let scheme = if has_tls { "https" } else { "http" };
    let what = match kind {
        Kind::Interface => "listening at",
        Kind::Stenographer => "answering Stenographer's clients at",
    };
    safe::printable(&format!("{what} {scheme}://{address}"))
}
