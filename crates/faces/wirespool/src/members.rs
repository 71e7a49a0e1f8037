//! `wirespool status`, `resilver`, `replace`, `grow`, `keys` and `erase`: what a volume's members
//! are and hold.

use core::time::Duration;
use std::path::PathBuf;

use clap::Args;
use host::{StopFlag, SystemClock};
use upkeep::{Erasing, NewMember, Rekeying, Target};

use crate::arguments::KeyFlags;
use crate::custody::forget::ReceiptFlags;
use crate::failure::{Outcome, Usage, Verdict};
use crate::progress::Progress;
use crate::remote::{Asked, Place, RemoteFlags, not_named, of_remote, volume_or_word};
use crate::{arguments, recorder, stdout};
use ::evidence::ReceiptForm;

/// Show a volume's redundancy.
///
/// Lists its members and spares, what each of them lacks, and how many more may be lost before
/// something is lost with them; and where a recorder runs, how its recording stands. Reads
/// superblocks and a few heads, takes no lock.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool status /data/spool
  wirespool status /dev/sdb1 --json
  wirespool --remote https://sensor:8420 status spool

Exit code 1 when a member is absent or lacks something.")]
pub(crate) struct StatusFlags {
    /// The volume: any of its members; with --remote the name of one
    #[arg(required_unless_present = "remote", value_parser = volume_or_word())]
    volume: Option<PathBuf>,
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH", conflicts_with = "remote")]
    members: Vec<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: RemoteFlags,
}

pub(crate) fn status(flags: &StatusFlags) -> Outcome {
    let Asked { place, words } = flags.remote.asked(flags.volume.as_deref(), &[])?;
    let (report, going) = match place {
        Place::Here(volume) => {
            (upkeep::status(&volume, &flags.members)?, recorder::state(&volume, &flags.members))
        }
        Place::There(there) => {
            there.named_by_all(&words).map_err(not_named)?.status().map_err(of_remote)?
        }
    };
    let text = if flags.json {
        volume_view::status_json(&report, going.as_deref())
    } else {
        volume_view::status(&report, going.as_deref(), stdout::width())
    };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_whole))
}

/// A volume, and how its report is given.
#[derive(Debug, Args)]
pub(crate) struct VolumeFlags {
    /// The volume: any of its members
    pub(crate) volume: PathBuf,
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH")]
    pub(crate) members: Vec<PathBuf>,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
struct TargetFlags {
    #[command(flatten)]
    of: VolumeFlags,
    /// Give up a member for ever, by number: the command does not wait for it, its seat stays
    /// empty, and a member that comes back is refused; replace puts a new device into the seat
    #[arg(long, value_name = "NUMBER")]
    without: Vec<units::MemberId>,
}

impl TargetFlags {
    fn target(&self) -> Target {
        let VolumeFlags { volume, members, .. } = &self.of;
        let (volume, members) = (volume.clone(), members.clone());
        Target { volume, members, without: self.without.clone() }
    }
}

#[derive(Debug, Args)]
struct NewFlags {
    /// Do not write a new file: made at once, but the disk may be full before the ring is
    #[arg(long)]
    sparse: bool,
    /// Use a whole disk without a partition table
    #[arg(long)]
    raw: bool,
    /// Destroy what a refusal names: a volume, or what another program left
    #[arg(long)]
    force: bool,
}

impl NewFlags {
    fn new_member(&self, path: PathBuf) -> NewMember {
        NewMember { path, sparse: self.sparse, raw: self.raw, force: self.force }
    }
}

/// Runs a job that shows progress and stops in order.
fn with_progress<T>(
    verb: &'static str,
    job: impl FnOnce(upkeep::Progress<'_>) -> Result<T, upkeep::Error>,
) -> anyhow::Result<T> {
    let stop = StopFlag::install()?;
    let mut progress = Progress::new(verb);
    let result = job(&mut |done, total| {
        progress.bytes(done, total);
        stop.flow()
    });
    progress.finish();
    Ok(result?)
}

/// Give members back what they missed.
///
/// What a member lacks because it was away is computed from the others, written and flushed; only
/// that, not the whole member. Ctrl-C stops in order, and the next run goes on there. A running
/// recorder does this by itself.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool resilver /data/spool

Exit code 1 when it was stopped, waits for absent members, or rows are lost for good.")]
pub(crate) struct ResilverFlags {
    #[command(flatten)]
    target: TargetFlags,
}

pub(crate) fn resilver(flags: &ResilverFlags) -> Outcome {
    let target = flags.target.target();
    let report =
        with_progress("resilver", |progress| upkeep::resilver(&target, &SystemClock, progress))?;
    let json = flags.target.of.json;
    let text =
        if json { volume_view::resilvered_json(&report) } else { volume_view::resilvered(&report) };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(report.is_complete && report.lost.is_empty()))
}

/// Put a new device into the place of a member.
///
/// The new device takes part at once, and is given everything that the other members hold for it.
/// The member it replaces may be failing or gone; it is not read. When this is broken off,
/// resilver goes on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool replace /data/spool 2 /data2/spool     member 2 is a new file now
  wirespool replace /dev/sdb1 0 /dev/sde --raw     member 0 is a new disk now

Exit code 1 when it was stopped, waits for absent members, or rows are lost for good.")]
pub(crate) struct ReplaceFlags {
    #[command(flatten)]
    target: TargetFlags,
    /// Number of the member, as status lists it
    number: units::MemberId,
    /// The new device: a new file, or a block device
    new: PathBuf,
    #[command(flatten)]
    how: NewFlags,
}

pub(crate) fn replace(flags: &ReplaceFlags) -> Outcome {
    arguments::must_answer(&flags.new)?;
    let target = flags.target.target();
    let new = flags.how.new_member(flags.new.clone());
    let (joined, given) = with_progress("replace", |progress| {
        upkeep::replace(&target, (flags.number, &new), &SystemClock, progress)
    })?;
    stdout::print(&if flags.target.of.json {
        volume_view::joined_json(&joined, Some(&given))
    } else {
        volume_view::joined(&joined) + &volume_view::resilvered(&given)
    })?;
    Ok(Verdict::clean_if(given.is_complete && given.lost.is_empty()))
}

/// Add members to a volume, or a spare.
///
/// New stripes are spread over all members from now on. What was recorded before stays where it is
/// and readable until the ring passes it; nothing is moved. With --parity the new stripes have more
/// parity, too. With --spare the device only waits: a running recorder puts it into the place of a
/// member that fails.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool grow /data/spool /data3/spool               one more data column
  wirespool grow /data/spool /data3/spool --parity 2    one more parity column
  wirespool grow /data/spool /data4/spool --spare")]
pub(crate) struct GrowFlags {
    #[command(flatten)]
    target: TargetFlags,
    /// The new devices: new files, or block devices
    #[arg(required = true)]
    new: Vec<PathBuf>,
    /// How many columns of new stripes hold parity; not less than now
    #[arg(long, value_name = "N", conflicts_with = "spare")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=2))]
    parity: Option<u8>,
    /// The device is a spare
    #[arg(long)]
    spare: bool,
    #[command(flatten)]
    how: NewFlags,
}

pub(crate) fn grow(flags: &GrowFlags) -> Outcome {
    flags.new.iter().try_for_each(|path| arguments::must_answer(path))?;
    let target = flags.target.target();
    let new: Vec<NewMember> =
        flags.new.iter().map(|path| flags.how.new_member(path.clone())).collect();
    if flags.spare {
        let [new] = &new[..] else {
            return Err(Usage("--spare takes one device at a time".to_owned()).into());
        };
        let joined = with_progress("grow", |progress| {
            upkeep::add_spare(&target, new, &SystemClock, progress)
        })?;
        let json = flags.target.of.json;
        let text = if json {
            volume_view::joined_json(&joined, None)
        } else {
            volume_view::joined(&joined)
        };
        stdout::print(&text)?;
        return Ok(Verdict::Clean);
    }
    let grown = with_progress("grow", |progress| {
        upkeep::grow(&target, &new, flags.parity, &SystemClock, progress)
    })?;
    let text = if flags.target.of.json {
        volume_view::grown_json(&grown)
    } else {
        volume_view::grown(&grown)
    };
    stdout::print(&text)?;
    Ok(Verdict::Clean)
}

/// Show or change who can read an encrypted volume.
///
/// Without --add and --remove it shows the recipients, and how many data keys the members have of
/// which time. --add adds a reader, --remove removes one: what is recorded from then on is for the
/// new recipients. With --identity the data keys of earlier recordings are wrapped for them, too;
/// no packet is rewritten. On a volume that is not encrypted, --add begins to encrypt: only what is
/// recorded from then on is encrypted. Not while a recorder runs.
///
/// Who was removed and has a copy of the old disks, or of the data keys, can still read what was
/// recorded until then.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool keys /data/spool
  wirespool keys /data/spool --add age1... --identity analyst.key
  wirespool keys /data/spool --remove age1... --add age1... --identity analyst.key

Exit code 1 when keys of the past stay as they were, for no identity opens them, or a member was
away.")]
pub(crate) struct KeysFlags {
    #[command(flatten)]
    of: VolumeFlags,
    /// Let the owner of this public key read; may be given several times
    #[arg(long, value_name = "RECIPIENT", value_parser = arguments::recipient)]
    add: Vec<String>,
    /// Let the owner of this public key read no more; may be given several times
    #[arg(long, value_name = "RECIPIENT")]
    remove: Vec<String>,
    #[command(flatten)]
    keys: KeyFlags,
}

pub(crate) fn keys(flags: KeysFlags) -> Outcome {
    let KeysFlags { of: VolumeFlags { volume, members, json }, add, remove, keys } = flags;
    if add.is_empty() && remove.is_empty() {
        let keys = upkeep::keys(&volume, &members)?;
        let text = if json { volume_view::keys_json(&keys) } else { volume_view::keys(&keys) };
        stdout::print(&text)?;
        return Ok(Verdict::Clean);
    }
    let target = Target { volume, members, without: Vec::new() };
    let rekeying = Rekeying { target, add, remove, identities: keys.identities()? };
    let rekeyed = upkeep::rekey(&rekeying, &SystemClock)?;
    let text =
        if json { volume_view::rekeyed_json(&rekeyed) } else { volume_view::rekeyed(&rekeyed) };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(rekeyed.left == 0 && rekeyed.absent.is_empty()))
}

/// Erase what is older than the maximum age.
///
/// Overwrites the slots of expired packets with zeros on every member, their index included, and
/// removes the index files that hold copies. First it notes in the volume, durably, that expired
/// packets are not given out any more. It erases slots in the order of the ring, each when its
/// newest packet has expired. A recorder with --erase does this by itself; this command is for a
/// volume without a running recorder. Ctrl-C stops in order, and the next run goes on there.
///
/// Of an encrypted volume it first destroys the data keys of all hours that have expired, on every
/// member, in seconds whatever the size: from then on nobody can read what they encrypted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool erase /data/spool                 what is older than the volume's maximum age
  wirespool erase /data/spool --max-age 7d    what is older than a week
  wirespool erase /data/spool --keys-only     of an encrypted volume: the keys, in seconds
  wirespool erase /data/spool --receipt erased.json --sign signing.key

Exit code 1 when it was stopped.")]
pub(crate) struct EraseFlags {
    #[command(flatten)]
    target: TargetFlags,
    /// Erase what is older than this now; the volume's own maximum age stays as it is
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    max_age: Option<Duration>,
    /// State that the clock is right, although neither the last recording nor the time since boot
    /// explains it
    #[arg(long)]
    clock_is_right: bool,
    /// Only destroy keys, of an encrypted volume; what they encrypted stays on the disks,
    /// unreadable
    #[arg(long)]
    keys_only: bool,
    /// Where index files are cached
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
    #[command(flatten)]
    receipt: ReceiptFlags,
}

pub(crate) fn erase(flags: EraseFlags) -> Outcome {
    let EraseFlags { target, max_age, clock_is_right, keys_only, index_dir, receipt } = flags;
    let json = target.of.json;
    let target = target.target();
    let erasing = Erasing { target, max_age, clock_is_right, keys_alone: keys_only, index_dir };
    let mut done = upkeep::Erased::default();
    receipt.around(0, || {
        let erase =
            |progress: upkeep::Progress<'_>| upkeep::erase(&erasing, &SystemClock, progress);
        done = with_progress("erase", erase)?;
        let volume = upkeep::status(&erasing.target.volume, &erasing.target.members)?.volume_id;
        Ok(ReceiptForm {
            action: "erase".to_owned(),
            volume_id: volume.to_string(),
            slots: done.slots.saturating_sub(done.left),
            slots_left: (done.left > 0).then_some(done.left),
            keys: done.keys.iter().map(|key| key.id).collect(),
            ..ReceiptForm::default()
        })
    })?;
    let erased = done;
    let text = if json { volume_view::erased_json(&erased) } else { volume_view::erased(&erased) };
    stdout::print(&text)?;
    Ok(Verdict::clean_if(!erased.is_stopped))
}
