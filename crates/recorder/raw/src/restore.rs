//! Opening a raw extract: members full of holes, in a folder of their own.

use core::ops::{ControlFlow, RangeInclusive};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use device::{CreateOptions, Device, ROW_SIZE};
use extract::Options;
use format::head::VolumeId;
use manifest::PieceRead;
use units::number::to_u64;
use units::{Clock, MemberId, Timestamp};

use crate::Error;
use crate::copy::{Copying, copy};
use crate::form::{Record, Source};

/// No member is larger: a forged heading asks for no file beyond what file systems have.
const SIZE_MAX: u64 = 1 << 60;

/// A raw extract as a volume again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Id of the volume that it was made of.
    pub volume: VolumeId,
    /// Files of the members that were there, lowest number first.
    pub members: Vec<PathBuf>,
    /// When it was made.
    pub made: Timestamp,
    /// A recorder ran then.
    pub is_recorded: bool,
    /// It holds packets of these times.
    pub times: RangeInclusive<Timestamp>,
    /// BLAKE3 of the whole file, as its manifest has it.
    pub blake3: [u8; 32],
}

/// The time at which a raw extract was made: what had expired then has, and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Then(pub Timestamp);

impl Clock for Then {
    fn realtime(&self) -> Timestamp {
        self.0
    }

    fn boottime_ns(&self) -> i64 {
        host::SystemClock.boottime_ns()
    }
}

impl Restored {
    /// How its volume is read; what is indexed on the way is kept beside the members.
    pub fn options(&self) -> Options {
        let (volume, members) = self.members.split_first().expect("none is restored without one");
        Options {
            volume: volume.clone(),
            members: members.to_vec(),
            index_dir: Some(volume.with_file_name("index")),
            is_recorded: self.is_recorded,
            ..Options::default()
        }
    }

    /// The pieces with packets that it holds, as its manifest has to list them: they are read as
    /// they were when it was made.
    ///
    /// # Errors
    /// As [`copy`].
    pub fn pieces(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Vec<PieceRead>, Error> {
        let options = self.options();
        let copying = Copying { options: &options, times: &self.times, made: self.made };
        Ok(copy(copying, &mut io::sink(), progress)?.pieces)
    }
}

/// Makes the members in an empty folder. The file may be anybody's: nothing of it is believed
/// before its hash was, and no file grows beyond what it holds but for holes. `progress` gets the
/// bytes so far, and may stop it.
///
/// # Errors
/// When it is no raw extract, or not whole, or files cannot be written; [`Error::Stopped`].
pub fn restore(
    from: &mut dyn Read,
    folder: &Path,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Restored, Error> {
    let (mut source, heading) = Source::begin(from)?;
    let mut members: BTreeMap<MemberId, (PathBuf, Box<dyn Device>, u64)> = BTreeMap::new();
    loop {
        let at = source.bytes;
        if progress(at).is_break() {
            return Err(Error::Stopped);
        }
        let Some(Record { member, offset, content }) = source.next()? else { break };
        let size = heading.sizes.get(member.place()).copied().unwrap_or(0);
        let len = to_u64(content.len());
        let is_aligned = [offset, len, size].into_iter().all(|it| it.is_multiple_of(ROW));
        let fits = offset.checked_add(len).is_some_and(|end| end <= size) && size <= SIZE_MAX;
        if !is_aligned || !fits {
            return Err(Error::Place(at));
        }
        let (_, device, _) = match members.entry(member) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let path = folder.join(format!("member{member}"));
                let device = open_member(&path, size)?;
                place.insert((path, device, size))
            }
        };
        device.write_at(offset, content)?;
    }
    let mut paths = Vec::new();
    for (path, mut device, _) in members.into_values() {
        device.flush()?;
        paths.push(path);
    }
    if paths.is_empty() {
        return Err(Error::Empty);
    }
    Ok(Restored {
        volume: VolumeId(heading.volume_id),
        members: paths,
        made: heading.made,
        is_recorded: heading.is_recorded,
        times: heading.from..=heading.to,
        blake3: source.hash.expect("its end was read"),
    })
}

const ROW: u64 = 4096;

fn open_member(path: &Path, size_bytes: u64) -> Result<Box<dyn Device>, Error> {
    assert_eq!(to_u64(ROW_SIZE), ROW, "rows of members");
    let options = CreateOptions { size_bytes, sparse: true, overwrite: false };
    device::create_file(path, &options, &mut |_, _| ControlFlow::Continue(()))?;
    Ok(device::open(path, &device::Options::default())?)
}
