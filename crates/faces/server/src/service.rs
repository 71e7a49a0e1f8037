//! What all requests share.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ::approvals::Requests;
use ::tags::Tags;
use encryption::Identities;
use host::SystemClock;
use questions::{Question, What};
use serde_json::Value;
use tokio::sync::Semaphore;
use turns::Limits;
use units::Clock as _;

use crate::answers::Answers;
use crate::config::{Bounds, Holds};
use crate::credentials::Credentials;
use crate::log::Log;
use crate::problem::Problem;
use crate::requests::Requests as Tallies;
use crate::settings::settings_json;
use crate::statuses::Statuses;
use crate::trail::Trail;
use crate::workers::{Room, Workers};
use crate::{Config, Error};

/// Requests that wait are refused after this.
const QUEUE_PATIENCE: Duration = Duration::from_secs(30);
/// Questions about the state of volumes have a queue of their own.
const STATUS_ROOM: Room = Room { limits: Limits::of_one(2, 16), patience: Duration::from_secs(10) };
/// Holds have one, too.
const HOLD_ROOM: Room = Room { limits: Limits::shared(1, 16), patience: QUEUE_PATIENCE };
/// And so has what is looked at besides.
const LOOK_ROOM: Room = Room { limits: Limits::shared(2, 16), patience: QUEUE_PATIENCE };
const LOOK_TIME: Duration = Duration::from_mins(1);
/// Jobs wait for each other, however long they take.
const JOB_ROOM: Room = Room { limits: Limits::shared(2, 16), patience: JOB_TIME };
/// Longer than any job takes.
pub(crate) const JOB_TIME: Duration = Duration::from_hours(30 * 24);
/// What such a question may take.
const STATUS_TIME: Duration = Duration::from_secs(20);
/// Anybody may send one, slowly; connections are left for others.
const BODIES_MAX: usize = 64;

/// More than the state of a volume has.
const STATUS_BYTES_MAX: usize = 16 << 20;

/// A volume that is served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Volume {
    /// The last part of its path; its id where several are called the same.
    pub(crate) name: String,
    /// The last part of its path.
    file_name: String,
    /// None while its superblocks cannot be read.
    id: OnceLock<String>,
    pub(crate) path: PathBuf,
}

impl Volume {
    /// Its id; empty while its superblocks cannot be read: nothing else has that.
    pub(crate) fn id(&self) -> &str {
        self.id.get().map_or("", String::as_str)
    }

    /// Whether its superblocks could be read.
    pub(crate) fn is_read(&self) -> bool {
        self.id.get().is_some()
    }
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) volumes: Vec<Volume>,
    pub(crate) credentials: Credentials,
    /// Bodies of requests without a credential that are read at the same time.
    pub(crate) bodies: Semaphore,
    /// Readings of the audit.
    pub(crate) audit_reads: Semaphore,
    /// Of this program.
    pub(crate) version: &'static str,
    pub(crate) bounds: Bounds,
    pub(crate) workers: Workers,
    pub(crate) status_workers: Workers,
    /// One after the other, so that each knows what the others take.
    pub(crate) hold_workers: Workers,
    pub(crate) look_workers: Workers,
    pub(crate) job_workers: Workers,
    pub(crate) jobs: ::jobs::Jobs,
    pub(crate) tags: Option<Arc<Tags>>,
    /// Extracts that one asks for and another one approves.
    pub(crate) approvals: Option<Arc<Requests>>,
    pub(crate) holds: Option<Holds>,
    /// Reports of the disks of volumes.
    pub(crate) qualifications: Vec<PathBuf>,
    /// What decodes packets besides.
    pub(crate) tshark: Option<PathBuf>,
    pub(crate) answers: Answers,
    statuses: Statuses,
    pub(crate) requests: Arc<Tallies>,
    pub(crate) log: Arc<Log>,
    pub(crate) trail: Arc<Trail>,
    pub(crate) is_stopping: AtomicBool,
    /// Volumes that cannot be read are looked for.
    is_seeking: AtomicBool,
    /// What it was started with, as JSON.
    pub(crate) settings: String,
    index_dir: Option<PathBuf>,
    identity: Option<PathBuf>,
}

impl Service {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let bounds = config.bounds;
        let limits = Limits::shared(bounds.workers, bounds.queue);
        let room = Room { limits, patience: QUEUE_PATIENCE };
        let log = Arc::new(Log::new(config.write_line));
        let workers = |room| Workers::new(config.worker_verb, config.environment.clone(), room);
        Ok(Self {
            volumes: volumes(&config.volumes, &log)?,
            credentials: Credentials::open(config)?,
            bodies: Semaphore::new(BODIES_MAX),
            audit_reads: Semaphore::new(1),
            version: config.version,
            bounds,
            workers: workers(room),
            status_workers: workers(STATUS_ROOM),
            hold_workers: workers(HOLD_ROOM),
            look_workers: workers(LOOK_ROOM),
            job_workers: workers(JOB_ROOM),
            jobs: ::jobs::Jobs::default(),
            tags: config.tags.as_deref().map(tags).transpose()?,
            approvals: config.approvals.as_deref().map(approvals).transpose()?,
            holds: config.holds.as_ref().map(holds).transpose()?,
            qualifications: qualifications(&config.qualifications)?,
            tshark: config.tshark.as_deref().map(decoder).transpose()?,
            answers: Answers::default(),
            statuses: Statuses::default(),
            requests: Arc::default(),
            trail: Arc::new(trail(config, &log)?),
            log,
            is_stopping: AtomicBool::new(false),
            is_seeking: AtomicBool::new(false),
            settings: settings_json(config),
            index_dir: config.index_dir.as_deref().map(absolute).transpose()?,
            identity: config.identity.as_deref().map(identity).transpose()?,
        })
    }

    /// Reads the credentials again; what is wrong with them is said once.
    pub(crate) fn refresh_access(&self) {
        if let Some(error) = self.credentials.refresh() {
            self.log.say(&format!("no credential counts until this is mended: {error}"));
        }
    }

    /// Tries what failed before, so that a service that nobody asks is well again by itself.
    pub(crate) async fn try_again(self: &Arc<Self>) {
        self.trail.try_again();
        self.seek_volumes();
        if let Some(volume) = self.volumes.first() {
            self.workers.try_again(&self.question(volume, What::Status, None)).await;
        }
    }

    /// Looks for the volumes that could not be read: their disks may be there now. A disk that does
    /// not answer holds up nothing but the next look.
    fn seek_volumes(self: &Arc<Self>) {
        let is_whole = self.volumes.iter().all(Volume::is_read);
        if is_whole || self.is_seeking.swap(true, Ordering::Relaxed) {
            return;
        }
        let service = Arc::clone(self);
        drop(tokio::task::spawn_blocking(move || {
            for volume in service.volumes.iter().filter(|volume| !volume.is_read()) {
                let Ok(id) = id_of(&volume.path) else { continue };
                if service.volumes.iter().all(|other| other.id() != id) {
                    volume.id.get_or_init(|| id);
                    service.log.say(&format!("{}: is there, and served", volume.name));
                }
            }
            service.is_seeking.store(false, Ordering::Relaxed);
        }));
    }

    /// The volume that is meant: the only one, or the one of this name or id.
    pub(crate) fn volume(&self, named: Option<&str>) -> Result<&Volume, Problem> {
        let volume = match (named, &self.volumes[..]) {
            (None, [only]) => Ok(only),
            (None, _) => Err(Problem::wrong_parameter(
                "several volumes are served: volume=NAME says which one (/api/v1/volumes)",
            )),
            (Some(named), volumes) => volumes
                .iter()
                .find(|volume| volume.name == named || (volume.is_read() && volume.id() == named))
                .ok_or_else(|| unfound(volumes, named)),
        }?;
        volume.is_read().then_some(volume).ok_or_else(|| Problem::unread_volume(&volume.name))
    }

    /// The state of a volume, as `status --json` prints it.
    pub(crate) async fn state(&self, volume: &Volume) -> Result<Value, Problem> {
        self.statuses.of(&volume.name, self.ask_state(volume)).await
    }

    async fn ask_state(&self, volume: &Volume) -> Result<Value, Problem> {
        let question = self.question(volume, What::Status, None);
        let running = self.status_workers.start("status", &question).await?;
        let (text, _) = running.whole(STATUS_BYTES_MAX).await?;
        serde_json::from_slice(&text).map_err(|_| Problem::worker_ended())
    }

    /// A question to a volume by who sees these times, or all; with the limits of this service.
    pub(crate) fn question(
        &self,
        volume: &Volume,
        what: What,
        sees_ns: Option<(i64, i64)>,
    ) -> Question {
        let time = match what {
            What::Status => STATUS_TIME,
            What::Job(_) => JOB_TIME,
            What::Look(_) => LOOK_TIME.min(self.bounds.time),
            _ => self.bounds.time,
        };
        Question {
            volume: volume.path.clone(),
            index_dir: self.index_dir.clone(),
            identity: self.identity.clone(),
            what,
            sees_ns,
            until_ns: SystemClock.boottime_ns().saturating_add(units::nanos(time)),
            memory_bytes: self.bounds.memory_bytes,
        }
    }
}

/// Why a volume is not found: there is none of this name, or several are called so.
fn unfound(volumes: &[Volume], named: &str) -> Problem {
    let called = volumes.iter().filter(|volume| volume.file_name == named);
    let ids: Vec<&str> = called.map(|volume| &*volume.name).collect();
    if ids.is_empty() {
        return Problem::not_found("a volume of this name is not served");
    }
    let ids = ids.join(" or ");
    Problem::wrong_parameter(format!("several volumes have this name: give the id, {ids}"))
}

/// Each worker reads the keys that it needs; what is wrong with them is said at once.
fn identity(path: &Path) -> Result<PathBuf, Error> {
    let parsed = Identities::parse(&host::read_key_bytes(path)?, &|| None);
    parsed.map_err(|why| Error::Identity(path.to_owned(), why))?;
    absolute(path)
}

/// Workers begin in the root directory.
fn holds(holds: &Holds) -> Result<Holds, Error> {
    // What is wrong with it is said at once.
    host::Directory::open(&holds.folder)?;
    Ok(Holds { folder: absolute(&holds.folder)?, ..*holds })
}

/// A service changes them.
fn tags(path: &Path) -> Result<Arc<Tags>, Error> {
    Ok(Arc::new(Tags::open(&absolute(path)?)?))
}

/// Credentials change them.
fn approvals(path: &Path) -> Result<Arc<Requests>, Error> {
    Ok(Arc::new(Requests::open(&absolute(path)?)?))
}

/// Each question reads them; what is wrong with them is said at once.
fn qualifications(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let checked = |path: &PathBuf| {
        let text = host::read_input(path)?;
        let parsed = qualify::parse_qualification(&text);
        parsed.map_err(|why| Error::Qualification(path.clone(), why))?;
        absolute(path)
    };
    paths.iter().map(checked).collect()
}

/// Each question starts it; where it is not there, that is said at once.
fn decoder(path: &Path) -> Result<PathBuf, Error> {
    drop(host::open_input(path)?);
    absolute(path)
}

/// Opens the audit, and says where it stands.
fn trail(config: &Config, log: &Arc<Log>) -> Result<Trail, Error> {
    let Some(files) = config.audit.clone() else {
        log.say("no audit: what is asked is only in this log (--audit FILE)");
        return Ok(Trail::new(None));
    };
    let files = audit::Files { path: absolute(&files.path)?, ..files };
    let path = files.path.clone();
    let program = format!("wirespool {}", config.version);
    let says = Arc::clone(log);
    let audit = audit::Audit::open(files, &program, move |line| says.say(line))?;
    let trail = Trail::new(Some((audit, path)));
    trail.head().into_iter().for_each(|head| log.say(&head));
    Ok(trail)
}

/// Workers begin in the root directory.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    Ok(std::path::absolute(path)?)
}

/// The volumes at these paths. One that cannot be read takes none of the others away, and may be
/// there later; where none can be read, the first one says why.
fn volumes(paths: &[PathBuf], log: &Log) -> Result<Vec<Volume>, Error> {
    let mut volumes: Vec<Volume> = Vec::new();
    let mut unread = None;
    for path in paths {
        let path = absolute(path)?;
        if path.to_str().is_none() {
            return Err(Error::NoText(path));
        }
        let name: String = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into();
        let id = OnceLock::new();
        match id_of(&path) {
            Ok(found) if volumes.iter().any(|other| other.id() == found) => {
                return Err(Error::Twice(name));
            }
            Ok(found) => drop(id.set(found)),
            Err(error) => {
                let why = page::safe::with_causes(&error);
                log.say(&format!("{why}: not served until it can be read"));
                unread.get_or_insert(error);
            }
        }
        volumes.push(Volume { file_name: name.clone(), name, id, path });
    }
    match unread {
        Some(error) if !volumes.iter().any(Volume::is_read) => Err(error),
        _ => Ok(named_apart(volumes)),
    }
}

fn id_of(path: &Path) -> Result<String, Error> {
    let opened = volume::open_superblocks(path, &[])
        .map_err(|error| upkeep::Error::of_volume(path, error))?;
    Ok(opened.superblock().volume_id.to_string())
}

/// Volumes that are called the same, in several folders, are named by their ids, or by their paths
/// where those are not known: neither of them is what the name means.
fn named_apart(mut volumes: Vec<Volume>) -> Vec<Volume> {
    let names: Vec<String> = volumes.iter().map(|volume| volume.file_name.clone()).collect();
    for volume in &mut volumes {
        if names.iter().filter(|name| **name == volume.file_name).count() > 1 {
            let path = || volume.path.to_string_lossy().into_owned();
            volume.name = volume.id.get().cloned().unwrap_or_else(path);
        }
    }
    volumes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_that_are_called_the_same_are_named_by_their_ids() {
        let volume = |file_name: &str, id: &str| Volume {
            name: file_name.to_owned(),
            file_name: file_name.to_owned(),
            id: OnceLock::from(id.to_owned()),
            path: PathBuf::new(),
        };
        let named = named_apart(vec![volume("a", "1"), volume("b", "2"), volume("a", "3")]);
        let shown: Vec<&str> = named.iter().map(|volume| &*volume.name).collect();
        assert_eq!(shown, ["1", "b", "3"]);
        let several = unfound(&named, "a");
        assert!(several.text().contains("1 or 3"), "{}", several.text());
        assert_eq!(unfound(&named, "c").status(), hyper::StatusCode::NOT_FOUND);
    }
}
