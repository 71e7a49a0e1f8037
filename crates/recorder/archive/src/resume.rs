//! Where an archive goes on: by what lies in the store, and nothing else.
//!
//! The newest manifest of a volume says what was archived last and which sessions were open then. A
//! run that was killed may have stored objects behind it; their names are in the pending object. If
//! all of them are there, the manifest that they were to have is stored. Otherwise they are made
//! again, under the same names, or removed, or kept, where the ring has overwritten what they were
//! made of.

use completeness::State;
use extract::OpenSessions;
use format::head::{StripeId, VolumeId};

use crate::Error;
use crate::event::Event;
use crate::manifest::{Manifest, Object, Pending};
use crate::names::{self, Sensor};
use crate::open_sessions;
use crate::uploader::Uploader;

/// What a run remembers beside the store, so that it need not list all manifests. It may be lost.
pub trait Memory {
    /// Name of the newest manifest of the volume, as far as is remembered.
    fn newest(&self, volume: VolumeId) -> Option<String>;

    /// Remembers one.
    fn remember(&self, volume: VolumeId, manifest: &str);
}

/// Where the archive of a volume stands.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// The last stripe that is archived.
    pub(crate) through: Option<StripeId>,
    /// What distinguishes that one from another of its number.
    pub(crate) mark: Option<String>,
    pub(crate) open: OpenSessions,
    /// The object that these are in.
    pub(crate) open_name: Option<String>,
    /// Rows of sessions that were open could not be read again.
    pub(crate) has_lost_open: bool,
    /// What can be said of all that is archived.
    pub(crate) state: State,
    /// What a killed run has left of the part behind.
    pub(crate) left: Option<Pending>,
}

pub(crate) fn resume(
    uploader: &mut Uploader<'_>,
    memory: &dyn Memory,
    sensor: &Sensor,
    volume: VolumeId,
) -> Result<Position, Error> {
    let mut newest = newest_manifest(uploader, memory, sensor, volume)?;
    let pending = uploader.get(&names::pending(sensor, volume))?;
    let pending = pending.and_then(|bytes| Pending::read(&bytes).ok());
    let archived = newest.as_ref().and_then(|(_, manifest)| manifest.unit());
    let mut left = pending.filter(|pending| pending.manifest.unit() > archived);
    if let Some(pending) = left.take_if(|pending| pending.is_whole)
        && let Some(unit) = pending.manifest.unit()
    {
        if is_all_there(uploader, &pending.manifest)? {
            let name = names::manifest(sensor, volume, unit);
            uploader.put(&name, &pending.manifest.write())?;
            newest = Some((name, pending.manifest));
        } else {
            left = Some(pending);
        }
    }
    let Some((name, manifest)) = newest else {
        return Ok(Position { left, ..Position::default() });
    };
    memory.remember(volume, &name);
    let (through, state) = (manifest.last(), manifest.archive_state());
    let mark = manifest.mark;
    let mut position = Position { through, mark, state, left, ..Position::default() };
    if let Some(open) = manifest.open {
        let bytes = uploader.get(&open.object.name)?;
        let bytes = bytes.filter(|bytes| open.object.wrong(bytes).is_none());
        if let Some(sessions) = bytes.and_then(|bytes| open_sessions::read(&bytes).ok()) {
            position.open = sessions;
        } else {
            position.has_lost_open = true;
            let text = format!(
                "{} is missing or damaged: of {} that were open, what was before is lost",
                open.object.name,
                page::text::plural(open.object.rows, "session")
            );
            uploader.tell(&Event::Remark { text });
        }
        position.open_name = Some(open.object.name);
    }
    remove_old_open(uploader, sensor, volume, &position)?;
    Ok(position)
}

/// What was archived last, with the name of its manifest.
fn newest_manifest(
    uploader: &mut Uploader<'_>,
    memory: &dyn Memory,
    sensor: &Sensor,
    volume: VolumeId,
) -> Result<Option<(String, Manifest)>, Error> {
    let folder = names::manifests(sensor, volume);
    let mut known = memory.newest(volume).filter(|name| name.starts_with(&folder));
    // A store that was emptied has it no more.
    if let Some(name) = &known
        && uploader.get(name)?.is_none()
    {
        known = None;
    }
    let behind = uploader.list(&folder, known.as_deref())?;
    let name = behind.into_iter().map(|listed| listed.name).next_back().or(known);
    let Some(name) = name else { return Ok(None) };
    let bytes = uploader.get(&name)?;
    let damaged = |why: String| Error::Damaged { name: name.clone(), why };
    let bytes = bytes.ok_or_else(|| damaged("it went away".to_owned()))?;
    let manifest = Manifest::read(&bytes).map_err(|error| damaged(error.to_string()))?;
    Ok(Some((name, manifest)))
}

fn is_all_there(uploader: &mut Uploader<'_>, manifest: &Manifest) -> Result<bool, Error> {
    let open = manifest.open.iter().map(|open| &open.object);
    for object in manifest.objects.iter().chain(open) {
        if !is_there(uploader, object)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an object is there, as it was written.
pub(crate) fn is_there(uploader: &mut Uploader<'_>, object: &Object) -> Result<bool, Error> {
    let bytes = uploader.get(&object.name)?;
    Ok(bytes.is_some_and(|bytes| object.wrong(&bytes).is_none()))
}

/// Removes what a run that was killed has left of open sessions.
fn remove_old_open(
    uploader: &mut Uploader<'_>,
    sensor: &Sensor,
    volume: VolumeId,
    position: &Position,
) -> Result<(), Error> {
    for listed in uploader.list(&names::open_sessions_of(sensor, volume), None)? {
        if Some(&listed.name) != position.open_name.as_ref() {
            uploader.delete(&listed.name)?;
        }
    }
    Ok(())
}
