//! Reading a whole volume, and making good what is damaged: from files to members.

use std::path::{Path, PathBuf};

use format::head::VolumeId;
use units::Sleep;
use volume::{MemberAt, Reader};
use writer::{Outcome, Owner, ScrubOptions, VerifyReport};

use crate::fate::{BadCopy, Fate};
use crate::turnover::opener;
use crate::verify::{BadStripe, locate, row_offset};
use crate::{Error, Progress, nameless};

/// What a scrub found and did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scrubbed {
    /// The member that was named.
    pub path: PathBuf,
    /// Id of the volume.
    pub volume_id: VolumeId,
    /// The members that were read.
    pub members: Vec<MemberAt>,
    /// Members of the volume that are not here.
    pub absent: Vec<u8>,
    /// Nothing was to be written.
    pub dry_run: bool,
    /// What was read, in numbers.
    pub ring: VerifyReport,
    /// Damage in the ring, and what became of it.
    pub damage: Vec<(BadStripe, Fate)>,
    /// Superblock copies that were not as they should be.
    pub copies: Vec<BadCopy>,
    /// Everything was read; not so when it was broken off.
    pub is_complete: bool,
    /// Nothing is damaged any more.
    pub is_sound: bool,
}

impl Scrubbed {
    /// Nothing was damaged.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty()
            && self.copies.iter().all(|copy| copy.is_old)
            && self.ring.parity_wrong.is_empty()
            && self.ring.given_up.is_empty()
    }
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
    let (damage, copies) = (damage.collect(), nameless::copies(&lost, dry_run).chain(copies));
    let copies = copies.collect();
    let membership = reader.membership();
    Ok(Scrubbed {
        path: path.to_path_buf(),
        volume_id: reader.superblock().volume_id,
        absent: membership.numbers().filter(|&it| membership.of(it).is_none()).collect(),
        members: found,
        dry_run,
        ring: report.verified,
        damage,
        copies,
        is_complete: report.is_complete,
        is_sound,
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
