//! To whom a volume is encrypted: read, changed, and begun, while no recorder runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use encryption::{Identities, Keyring, Recipients};
use format::key_log::KeyLog;
use serde::{Serialize, Serializer};
use units::{MemberId, Sleep, Timestamp};

use crate::turnover::Opened;
use crate::{Error, Target};

/// Who can read a volume, and which of its keys are there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Keys {
    /// Texts of the public keys that data keys are wrapped to; none where nothing is encrypted.
    pub recipients: Vec<String>,
    /// Data keys on the members.
    pub keys: usize,
    /// When the oldest and the newest of them were made.
    #[serde(flatten, serialize_with = "made")]
    pub made: Option<(Timestamp, Timestamp)>,
    /// Keys that were destroyed and whose numbers are still known.
    pub destroyed: usize,
    /// When the newest of those was made: nothing that was recorded before is readable.
    #[serde(rename = "destroyed_made_ns", skip_serializing_if = "Option::is_none")]
    pub destroyed_made: Option<Timestamp>,
}

#[expect(clippy::ref_option, reason = "serde gives a reference")]
fn made<S: Serializer>(times: &Option<(Timestamp, Timestamp)>, to: S) -> Result<S::Ok, S::Error> {
    let named = |(oldest, newest)| [("oldest_made_ns", oldest), ("newest_made_ns", newest)];
    to.collect_map(times.iter().copied().flat_map(named))
}

impl Keys {
    fn of(log: &KeyLog) -> Self {
        let made: BTreeMap<u64, Timestamp> = log.keys().map(|key| (key.id, key.made)).collect();
        let oldest = made.values().min().copied();
        Self {
            recipients: log.recipients(),
            keys: made.len(),
            made: oldest.zip(made.values().max().copied()),
            destroyed: log.destroyed().map(|key| key.id).collect::<BTreeSet<_>>().len(),
            destroyed_made: log.destroyed().map(|key| key.made).max(),
        }
    }
}

/// Reads them.
///
/// # Errors
/// When the volume cannot be opened.
pub fn keys(volume: &Path, members: &[PathBuf]) -> Result<Keys, Error> {
    Ok(Keys::of(&crate::open(volume, members)?.key_log()))
}

/// How the recipients of a volume are to change.
#[derive(Debug)]
pub struct Rekeying {
    /// The volume.
    pub target: Target,
    /// Who is to read it, too.
    pub add: Vec<String>,
    /// Who is to read it no more.
    pub remove: Vec<String>,
    /// Who can read it now: with these the keys that are there are wrapped anew.
    pub identities: Option<Identities>,
}

/// What a change of recipients came to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Rekeyed {
    /// As it is now.
    #[serde(flatten)]
    pub keys: Keys,
    /// It was not encrypted before: what is recorded from now on is.
    #[serde(rename = "begun")]
    pub has_begun: bool,
    /// Keys that were wrapped anew.
    pub rewrapped: usize,
    /// Keys that stay as they were, for nobody opened them: who was added cannot read what they
    /// encrypted, and who was removed can.
    pub left: usize,
    /// Members that are away and have the keys as they were, by number.
    pub absent: Vec<MemberId>,
}

/// Changes the recipients of a volume. Where none had any, encryption begins with what is recorded
/// next.
///
/// # Errors
/// [`Error::Recipients`] when a text is no recipient; [`Error::NoSuchRecipient`];
/// [`Error::LastRecipient`]; when the volume cannot be opened for writing.
pub fn rekey(rekeying: &Rekeying, clock: &dyn Sleep) -> Result<Rekeyed, Error> {
    let Rekeying { target, identities, .. } = rekeying;
    // What is wrong with the wish is said before anything is written.
    let reader = crate::open(&target.volume, &target.members)?;
    Recipients::parse(&rekeying.recipients(reader.key_log().recipients())?)?;
    drop(reader);
    let mut opened = Opened::new(target, clock)?;
    // Somebody else may have changed them until the volume was ours.
    let recipients = match rekeying.recipients(opened.writer.key_log().recipients()) {
        Ok(recipients) => recipients,
        Err(error) => return Err(opened.close(clock).err().unwrap_or(error)),
    };
    let parsed = Recipients::parse(&recipients)?;
    let is_encrypted = opened.writer.superblock().is_encrypted;
    let volume_id = opened.writer.superblock().volume_id.0;
    let ids: BTreeSet<u64> = opened.writer.key_log().keys().map(|key| key.id).collect();
    let keyring = Keyring::new(volume_id, identities.clone());
    opened.writer.key_log().keys().for_each(|key| keyring.learn(key.id, &key.wrapped));
    let mut wrapped = BTreeMap::new();
    for &id in &ids {
        if let Some(key) = keyring.key(id) {
            wrapped.insert(id, parsed.wrap(&key, volume_id, id)?);
        }
    }
    let changed = if is_encrypted {
        opened.writer.set_recipients(&recipients, &wrapped, clock)
    } else {
        opened.writer.begin_to_encrypt(&recipients, clock)
    };
    changed.map_err(|error| opened.named(error))?;
    let keys = Keys::of(opened.writer.key_log());
    opened.close(clock)?;
    let reader = crate::open(&target.volume, &target.members)?;
    Ok(Rekeyed {
        keys,
        has_begun: !is_encrypted,
        rewrapped: wrapped.len(),
        left: ids.len() - wrapped.len(),
        absent: reader.membership().absent().collect(),
    })
}

impl Rekeying {
    /// Of the volume afterwards, each once; `known` are those that it has.
    fn recipients(&self, known: Vec<String>) -> Result<Vec<String>, Error> {
        if let Some(strange) = self.remove.iter().find(|text| !known.contains(text)) {
            let (text, known) = (strange.clone(), known.join(", "));
            return Err(Error::NoSuchRecipient { path: self.target.volume.clone(), text, known });
        }
        let mut recipients: Vec<String> =
            known.into_iter().filter(|text| !self.remove.contains(text)).collect();
        for text in &self.add {
            if !recipients.contains(text) {
                recipients.push(text.clone());
            }
        }
        if recipients.is_empty() {
            return Err(Error::LastRecipient { path: self.target.volume.clone() });
        }
        Ok(recipients)
    }
}
