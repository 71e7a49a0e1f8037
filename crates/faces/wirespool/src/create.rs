//! `wirespool create`.

use core::time::Duration;
use std::path::PathBuf;

use ::qualify::Choice;
use clap::Args;
use host::{StopFlag, SystemClock};
use upkeep::CreateOptions;
use volume::{Bound, Usable};

use crate::failure::{self, Outcome, Verdict};
use crate::progress::Progress;
use crate::{arguments, stdout};

/// Make a volume out of a new file or a disk.
///
/// A file is written from end to end, so that recording never waits for the file system to find
/// space; a disk takes seconds whatever its size. Nothing is destroyed by mistake: a target that is
/// mounted, in use, or holds a file system, a partition table or another volume is refused, and the
/// message says what was found.
///
/// A disk with platters is fast outside and half as fast inside. On it the ring visits 8 zones of
/// the surface in turn, so that any stretch of time sees the mean of both; flash and files are
/// written from the first byte to the last. With --qualification the measured rates decide, and a
/// line for each decision says why; other options take precedence.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool create /data/spool --size 100G     a file, written completely
  wirespool create /dev/sdb                    a whole disk, with a partition table
  wirespool create /tmp/try --size 1G --sparse  at once, for trying things out
  wirespool create /dev/sdb --member /dev/sdc --member /dev/sdd --member /dev/sde --parity 2
                                               four disks, of which any two may be lost
  wirespool create /dev/sdb --usable 90%       without the slowest tenth of the disk
  wirespool create /dev/sdb --qualification sdb.json
                                               as `qualify /dev/sdb ... -o sdb.json` found best
  wirespool create /data/spool --size 100G \\
      --recipient age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa
                                               only the owner of that key can read it")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Flags {
    /// A new file, or a block device
    volume: PathBuf,
    /// A further member: a file or a block device of its own; may be given several times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// How many members may be lost: 0, 1 or 2 of them hold parity, in turn
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=2))]
    parity: u8,
    /// How many members, behind those given, are to come later: replace adds them
    #[arg(long, value_name = "N", default_value_t = 0)]
    missing: u8,
    /// A device that takes the place of a member that fails; may be given several times
    #[arg(long = "spare", value_name = "PATH")]
    spares: Vec<PathBuf>,
    /// Size of each file, such as 8G; a block device is used whole
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    size: Option<u64>,
    /// Do not write the file: made at once, but the first lap is slower and may find the disk full
    #[arg(long)]
    sparse: bool,
    /// Bytes of a piece, the unit of writing
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = piece)]
    piece: u32,
    /// Zones of the surface that the ring visits in turn: 1, or an even number [default: 8 on
    /// rotating disks, else 1]
    #[arg(long, value_name = "N", value_parser = zones)]
    zones: Option<u16>,
    /// Bytes of an extent, one visit to a zone: a multiple of the piece [default: 128M, less on a
    /// small ring]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    extent: Option<u64>,
    /// The part of each member that the ring may use, such as 90%, 10%..90% or 1T..6T
    #[arg(long, value_name = "BEGIN..END", value_parser = usable)]
    usable: Option<Usable>,
    /// Let the report of a qualification choose zones, extent, usable range and pool, and keep what
    /// it guarantees in the volume; for several disks give the report of each
    #[arg(long = "qualification", value_name = "FILE")]
    qualifications: Vec<PathBuf>,
    /// Accept reports of other disks, such as disks of the same kind
    #[arg(long, requires = "qualifications")]
    of_other_disks: bool,
    /// Give out no packet older than this, such as 7d, whatever the ring still holds
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    max_age: Option<Duration>,
    /// Encrypt packets and sessions to this public key, as age-keygen prints it; may be given
    /// several times: each of their owners can read, and nobody else
    #[arg(long = "recipient", value_name = "age1...", value_parser = arguments::recipient)]
    recipients: Vec<String>,
    /// Use a whole disk without a partition table; other tools will then show it as empty
    #[arg(long)]
    raw: bool,
    /// Destroy what a refusal names: a volume, or what another program left
    #[arg(long)]
    force: bool,
    /// Report as JSON
    #[arg(long)]
    json: bool,
}

/// A power of two from 16K to 2M.
fn piece(text: &str) -> Result<u32, String> {
    let bytes = u32::try_from(arguments::size(text)?).unwrap_or(u32::MAX);
    let is_valid = bytes.is_power_of_two() && (16 << 10..=2 << 20).contains(&bytes);
    is_valid.then_some(bytes).ok_or_else(|| "a power of two from 16K to 2M".to_owned())
}

/// 1, or an even number.
fn zones(text: &str) -> Result<u16, String> {
    let zones = text.parse().ok().filter(|&zones: &u16| zones == 1 || zones > 0 && zones % 2 == 0);
    zones.ok_or_else(|| "1, or an even number".to_owned())
}

/// `90%`, `10%..90%`, `1T..6T`, `1T..`.
fn usable(text: &str) -> Result<Usable, String> {
    let whole = Usable::default();
    let (begin, end) = text.split_once("..").unwrap_or(("", text));
    let or = |text: &str, missing| if text.is_empty() { Ok(missing) } else { bound(text) };
    if begin.is_empty() && end.is_empty() {
        return Err("write a range such as 90%, 10%..90% or 1T..6T".to_owned());
    }
    Ok(Usable { begin: or(begin, whole.begin)?, end: or(end, whole.end)? })
}

/// A size, or percent with at most two decimals.
fn bound(text: &str) -> Result<Bound, String> {
    let Some(percent) = text.strip_suffix('%') else {
        return arguments::size(text).map(Bound::Bytes);
    };
    let (whole, decimals) = percent.split_once('.').unwrap_or((percent, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = !whole.is_empty() && digits(whole) && digits(decimals) && decimals.len() <= 2;
    let share = is_number.then(|| format!("{whole}{decimals:0<2}").parse().ok()).flatten();
    share
        .filter(|&share: &u16| share <= 10_000)
        .map(Bound::Share)
        .ok_or_else(|| format!("{text:?} is no share between 0% and 100%"))
}

/// Refuses flags that contradict each other, whatever the members are.
fn check(flags: &Flags) -> Result<(), failure::Usage> {
    let wrong = |text: String| Err(failure::Usage(text));
    match flags.extent {
        Some(extent) if extent == 0 || !extent.is_multiple_of(u64::from(flags.piece)) => {
            wrong(format!("--extent {extent}: no multiple of the piece of {} bytes", flags.piece))
        }
        Some(_) if flags.zones == Some(1) => {
            wrong("--extent has no meaning with --zones 1".to_owned())
        }
        _ => Ok(()),
    }
}

/// What the reports advise; `None` without reports.
fn advice(flags: &Flags) -> anyhow::Result<Option<Choice>> {
    if flags.qualifications.is_empty() {
        return Ok(None);
    }
    let members = [std::slice::from_ref(&flags.volume), &flags.members].concat();
    let data_members =
        (members.len() + usize::from(flags.missing)).saturating_sub(usize::from(flags.parity));
    let given = ::qualify::Given {
        zones: flags.zones,
        extent_bytes: flags.extent,
        has_usable: flags.usable.is_some(),
        data_members: u8::try_from(data_members).unwrap_or(u8::MAX),
        member_bytes: flags.size.or_else(|| ::qualify::least_size(&members)),
    };
    Ok(Some(setup::advice(&flags.qualifications, &members, given, flags.of_other_disks)?))
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    check(flags)?;
    let disks = [&flags.volume].into_iter().chain(&flags.members).chain(&flags.spares);
    disks.into_iter().try_for_each(|path| arguments::must_answer(path))?;
    let choice = advice(flags)?;
    let choice = choice.as_ref();
    let percent = choice.and_then(|choice| choice.usable_percent);
    let advised =
        percent.map(|percent| Usable { begin: Bound::Share(0), end: Bound::Share(percent * 100) });
    let options = CreateOptions {
        members: [std::slice::from_ref(&flags.volume), &flags.members].concat(),
        missing: flags.missing,
        spares: flags.spares.clone(),
        parity_columns: flags.parity,
        size_bytes: flags.size,
        piece_bytes: flags.piece,
        zones: flags.zones.or(choice.map(|choice| choice.zones)),
        extent_bytes: flags.extent.or(choice.and_then(|choice| choice.extent_bytes)),
        usable: flags.usable.or(advised).unwrap_or_default(),
        qualified: choice.map(|choice| choice.qualified),
        max_age: flags.max_age,
        recipients: flags.recipients.clone(),
        sparse: flags.sparse,
        raw: flags.raw,
        force: flags.force,
    };
    let stop = StopFlag::install()?;
    let mut progress = Progress::new("create");
    let created = upkeep::create(&options, &SystemClock, &mut |done, total| {
        progress.bytes(done, total);
        stop.flow()
    });
    progress.finish();
    let created = created?;
    let reasons = choice.map(qualify_view::choice).unwrap_or_default();
    let text = if flags.json {
        volume_view::created_json(&created, &reasons)
    } else {
        volume_view::created(&created, &reasons)
    };
    stdout::print(&text)?;
    Ok(Verdict::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usable_range_has_bounds_of_bytes_or_percent() {
        let (first, last) = (Bound::Share(0), Bound::Share(10_000));
        for (text, begin, end) in [
            ("90%", first, Bound::Share(9000)),
            ("10%..90.5%", Bound::Share(1000), Bound::Share(9050)),
            ("1T..6T", Bound::Bytes(1 << 40), Bound::Bytes(6 << 40)),
            ("2G..", Bound::Bytes(2 << 30), last),
            ("..99.99%", first, Bound::Share(9999)),
        ] {
            assert_eq!(usable(text), Ok(Usable { begin, end }), "{text}");
        }
        for text in ["", "..", "x", "-1%", "101%", "1.234%", "%", "1..2..3", "90%..x", "655.36%"] {
            assert!(usable(text).is_err(), "{text}");
        }
    }
}
