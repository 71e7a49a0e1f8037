//! Reading a whole volume, and making good what is damaged: from files to members.

use std::path::{Path, PathBuf};

use format::head::{StripeId, VolumeId};
use serde::{Serialize, Serializer};
use units::{MemberId, Sleep};
use volume::{GivenUp, MemberAt, Reader, path_text};
use writer::{Outcome, Owner, ReadBack, ScrubOptions};

use crate::fate::{BadCopy, Fate};
use crate::turnover::opener;
use crate::verify::{BadStripe, locate, row_offset};
use crate::{Error, Progress, nameless};

/// What a scrub found and did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct Scrubbed {
    /// The member that was named.
    #[serde(serialize_with = "path_text")]
    pub path: PathBuf,
    /// Id of the volume.
    pub volume_id: VolumeId,
    /// Nothing was to be written.
    pub dry_run: bool,
    /// Nothing was damaged.
    #[serde(rename = "clean")]
    pub is_clean: bool,
    /// Nothing is damaged any more.
    #[serde(rename = "sound")]
    pub is_sound: bool,
    /// Everything was read; not so when it was broken off.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// The members that were read.
    pub members: Vec<MemberAt>,
    /// Members of the volume that are not here.
    pub absent: Vec<MemberId>,
    /// What was read, in numbers.
    #[serde(flatten)]
    pub read: ReadBack,
    /// Stripes of which a piece is missing on a member that is absent or stale there, though all
    /// of its rows can be had.
    pub degraded: u64,
    /// Stripes that the writer passed while they were waiting to be read.
    pub overwritten: u64,
    /// Superblock copies that were not as they should be.
    #[serde(rename = "superblocks")]
    pub copies: Vec<BadCopy>,
    /// Damage in the ring, and what became of it.
    #[serde(serialize_with = "places")]
    pub damage: Vec<(BadStripe, Fate)>,
    /// Stripes whose parity does not follow from their data: only the data can be trusted.
    pub parity_wrong: Vec<StripeId>,
    /// Members that failed too often or for too long, and were not read to the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUp>,
}

/// Where something was damaged, and what became of it.
#[derive(Serialize)]
struct Place<'a> {
    stripe: StripeId,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<MemberId>,
    slot_offset: u64,
    row_offsets: &'a [u64],
    fate: &'a Fate,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    lost_row_offsets: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
}

fn places<S: Serializer>(damage: &[(BadStripe, Fate)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(damage.iter().map(|(bad, fate)| Place {
        stripe: bad.stripe,
        member: bad.member,
        slot_offset: bad.slot_offset,
        row_offsets: &bad.row_offsets,
        fate,
        lost_row_offsets: if let Fate::Partly(lost) = fate { lost } else { &[] },
        cause: if let Fate::Failed(cause) = fate { Some(cause) } else { None },
    }))
}

/// Checks everything that is acknowledged and, unless it is a dry run, repairs what the other
/// members give back. Repairing takes the volume for this process alone; a dry run takes no lock
/// and may run beside a recorder.
///
/// # Errors
/// [`Error::Nameless`] when neither `path` nor any of `members` has a superblock.
pub fn scrub(
    path: &Path,
    members: &[PathBuf],
    dry_run: bool,
    clock: &dyn Sleep,
    progress: Progress<'_>,
) -> Result<Scrubbed, Error> {
    let given = [&[path.to_path_buf()][..], members].concat();
    let (nameless, members): (Vec<_>, Vec<_>) =
        given.into_iter().partition(|path| volume::lacks_superblock(path));
    // The others are found by the first that says what the volume is.
    let [known, members @ ..] = &members[..] else {
        return Err(Error::Nameless { path: path.to_path_buf() });
    };
    let named = |source| Error::of_volume(known, source);
    let claims_by = (!dry_run).then_some(clock);
    let mut opened = Opened::new(known, members, claims_by)?;
    let lost = nameless::find(known, &nameless, &opened.reader)?;
    if !dry_run && !lost.is_empty() {
        nameless::restore(&opened.reader, &lost)?;
        opened.close()?;
        let found: Vec<PathBuf> = lost.iter().map(|lost| lost.at.path.clone()).collect();
        opened = Opened::new(known, &[members, &found].concat(), claims_by)?;
    }
    let options = ScrubOptions::default();
    let report = writer::scrub(&opened.reader, opened.owner.as_mut(), options, progress);
    let report = report.map_err(named)?;
    let (found, reader) = opened.close()?;
    let is_sound = report.is_sound() && (lost.is_empty() || !dry_run);
    let damage = report.findings.iter().map(|found| {
        let bad = locate(&found.damage);
        let fate = fate(&found.outcome, &|row| row_offset(&found.damage, row));
        (bad, fate)
    });
    let copies = report.copies.iter().map(|bad| BadCopy {
        member: bad.member,
        copy: bad.copy,
        is_old: bad.is_old,
        fate: fate(&bad.outcome, &|_| 0),
    });
    let damage: Vec<_> = damage.collect();
    let copies: Vec<BadCopy> = nameless::copies(&lost, dry_run).chain(copies).collect();
    let (membership, ring) = (reader.membership(), report.verified);
    Ok(Scrubbed {
        path: path.to_path_buf(),
        volume_id: reader.superblock().volume_id,
        dry_run,
        is_clean: damage.is_empty()
            && copies.iter().all(|copy| copy.is_old)
            && ring.parity_wrong.is_empty()
            && ring.given_up.is_empty(),
        is_sound,
        is_complete: report.is_complete,
        absent: membership.numbers().filter(|&it| membership.of(it).is_none()).collect(),
        members: found,
        read: ring.read,
        degraded: ring.degraded,
        overwritten: ring.overwritten,
        copies,
        damage,
        parity_wrong: ring.parity_wrong,
        given_up: ring.given_up,
    })
}

/// The members of a volume, held by this process alone where they are to be written.
struct Opened<'a> {
    path: &'a Path,
    found: Vec<MemberAt>,
    owner: Option<Owner<'a>>,
    reader: Reader,
}

impl<'a> Opened<'a> {
    fn new(
        path: &'a Path,
        members: &[PathBuf],
        claims_by: Option<&'a dyn Sleep>,
    ) -> Result<Self, Error> {
        let named = |source| Error::of_volume(path, source);
        let found = volume::find_members(path, members).map_err(named)?;
        let owner = claims_by.map(|clock| claim(path, &found, clock)).transpose()?;
        let opened = volume::open_members(&found).map_err(named)?;
        let reader = Reader::open(opened).map_err(named)?;
        Ok(Self { path, found, owner, reader })
    }

    /// Lets the members go.
    fn close(self) -> Result<(Vec<MemberAt>, Reader), Error> {
        let given_up = self.owner.map_or(Ok(()), Owner::give_up);
        given_up.map_err(|source| Error::of_volume(self.path, source))?;
        Ok((self.found, self.reader))
    }
}

fn fate(outcome: &Outcome, offset: &dyn Fn(u16) -> u64) -> Fate {
    match outcome {
        Outcome::Repaired => Fate::Repaired,
        Outcome::Repairable => Fate::Repairable,
        Outcome::Partly { lost_rows, .. } => {
            Fate::Partly(lost_rows.iter().map(|&row| offset(row)).collect())
        }
        Outcome::Passing => Fate::Passing,
        Outcome::Failed(error) => Fate::Failed(error.to_string()),
        _ => Fate::Lost,
    }
}

fn claim<'a>(path: &Path, members: &[MemberAt], clock: &'a dyn Sleep) -> Result<Owner<'a>, Error> {
    let open = |found: &MemberAt| {
        device::open(&found.path, &device::Options::default()).map_err(|error| match error {
            device::Error::InUse { path } => Error::Recording { path },
            error => error.into(),
        })
    };
    let devices = device::side_by_side("open", members, open);
    let devices = devices.into_iter().collect::<Result<Vec<_>, _>>()?;
    Owner::claim(devices, &opener(members, clock)?).map_err(|source| Error::of_volume(path, source))
}
