//! The flags of `qualify`, and what they mean together.

use std::path::{Path, PathBuf};

use ::qualify::{
    Array, Ask, BLOCK_BYTES_MAX, Consent, Contest, Disk, MEMBERS_MAX, Mix, Need, Part, Plan,
    Qualification, typical, typical_names,
};
use anyhow::Context as _;
use capture::{FileOptions, FileSource};
use clap::{Args, Subcommand};

use crate::arguments;
use crate::failure::Usage;

/// Smallest file that is made: below, there is nothing to measure.
const SIZE_MIN: u64 = 64 << 20;
const ROW_BYTES: u64 = 4096;
/// Runs of a comparison, and their bytes.
const ROUNDS: u32 = 8;
const RUN_BYTES: u64 = 512 << 20;
/// Runs that fit into a file that is made for a comparison.
const RUNS_OF_FILE: u64 = 4;

/// Find out what rate a disk guarantees, as traffic.
///
/// In a directory, or at a path where nothing exists, it makes a file, measures it, and removes it.
/// An existing file and a device are only read; of a volume all members are read, and compared with
/// what the volume keeps of an earlier qualification. A device is written to when its serial number
/// is typed behind --destroy, no process uses it or a part of it, and it holds nothing, or only
/// what --overwrite names. Ctrl-C stops in order: a file is removed, and the report says what was
/// written.
///
/// The guaranteed rate is the highest constant arrival that never overflows the pool, in any
/// stretch of what was measured, lap after lap; it is given as bits a second on a link.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Parts:
  sweep     rates at 21 places of the surface, one block at a time; it reads where it may not write
  fill      the surface written from the first byte to the last, 8 blocks under way
  passes    two fills, the second from the middle on: separates place, amount and time
  ring      the surface written in the order of a ring whose zones are levelled
  extents   throughput by the bytes between two jumps, and where jumps stop to matter
  latency   writes that arrive at a constant rate: histogram, longest stall, the pool it needs
  mixed     writing without and with readers: what they cost
  reads     4 KiB at random places, answers of a cache shown apart
  iops      random writes of 4 KiB with 1, 8, 64 and 256 under way
  files     files of a directory written, and removed when nine tenths are full, lap after lap
  cpu       processor time for checksums and parity

Examples:
  wirespool qualify /data                                  a quick look at where a volume would lie
  wirespool qualify /data --size 100G --full --rate 10G -o data.json --html data.html
  wirespool qualify /dev/sdb                               a sweep and random reads, nothing written
  wirespool qualify /dev/sdb --destroy ZA1234 --full       everything; all that it holds is lost
  wirespool qualify --model profile.csv --data-disks 6 --rate 10G --mix 640
  wirespool qualify /dev/sdb --destroy ZA1234 --full --resume data.json
  wirespool qualify --compare /mnt/ext4 /mnt/xfs /mnt/btrfs
  wirespool qualify --compare /disk1 /disk1:checksums /disk1+/disk2 /disk1+/disk2+/disk3:parity
  wirespool qualify --compare host.json guest.json
  wirespool qualify show data.json
  wirespool qualify diff before.json now.json
  wirespool qualify plan --rate 10G --mean 1G --days 10

Exit code 0 when it was done and the rate fits, 1 when the rate does not, or rows read back were not
those written, 5 when what was measured does not say whether --rate fits (reading proves no writing,
a cache or a limit may be what was measured), and when it was stopped.")]
pub struct Flags {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// A directory, a file, or a block device
    #[arg(required_unless_present_any = ["model", "compare"])]
    target: Option<PathBuf>,
    /// Compare these: targets, each written in turn, forth and back; or reports of --output.
    /// Several targets joined by + are members side by side; :checksums, :parity or :double-parity
    /// at the end adds what a volume computes, with parity on the last one or two of them
    #[arg(long, value_name = "TARGET", num_args = 2..,
        conflicts_with_all = ["target", "model", "parts", "quick", "full", "rate", "fio"])]
    pub(super) compare: Vec<PathBuf>,
    /// Runs of each target that is compared [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: Option<u32>,
    /// Bytes of a run [default: 512M]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    run_size: Option<u64>,
    /// Record the first line of this file with each run, as a factor that may explain the modes: a
    /// temperature, a scheduler, a limit; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(super) fact: Vec<PathBuf>,
    /// Measure a modelled disk, in its own time: rates by place, in CSV with the columns
    /// `offset_bytes,mb_per_s` or, for 10 000 blocks of 2 MiB, `offset_bytes,seconds`
    #[arg(long, value_name = "CSV", conflicts_with_all = ["target", "destroy", "overwrite"])]
    model: Option<PathBuf>,
    /// So many modelled disks side by side, as the data disks of an array
    #[arg(long, value_name = "N", default_value_t = 1, requires = "model",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    data_disks: u32,
    /// So many disks of parity besides: the report also says what is guaranteed while members are
    /// lost
    #[arg(long, value_name = "N", requires = "model",
        value_parser = clap::value_parser!(u8).range(0..=2))]
    parity_disks: Option<u8>,
    /// Run this part; may be given several times [default: those of --quick]
    #[arg(long = "part", value_name = "PART",
        value_parser = arguments::word(Part::ALL.map(Part::name), part))]
    parts: Vec<Part>,
    /// Minutes: all parts but passes and ring, with less of each (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All parts over the whole surface: several times as long as writing it
    #[arg(long)]
    full: bool,
    /// Bytes of the file that is made, or of a modelled disk [default: 8G; of a model, its last
    /// offset rounded up to a whole terabyte, or gigabyte where it is smaller]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    size: Option<u64>,
    /// Memory between capture and disk
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = arguments::size)]
    pool: u64,
    /// Judge whether it is fast enough for so many bits a second of a link, such as 2.5G
    #[arg(long, value_name = "RATE", value_parser = arguments::bits)]
    rate: Option<u64>,
    /// Frames of the traffic: a length in bytes, `short` (64), `long` (1514), `imix` (7 of 64, 4 of
    /// 576, 5 of 1514), or a capture file
    #[arg(long, value_name = "FRAMES", default_value = "imix")]
    mix: String,
    /// Bytes of a block
    #[arg(long, value_name = "SIZE", default_value = "2M", value_parser = block)]
    block: u64,
    /// Blocks at each place of a sweep [default: 64, with --full or --model 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    blocks: Option<u64>,
    /// Places of a sweep, without the last one at the very end
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    steps: u64,
    /// Places of a sweep are multiples of this
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = align)]
    align: u64,
    /// Bytes a second that arrive in the part latency [default: four fifths of what was guaranteed]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    offer: Option<u64>,
    /// Bytes a second that streams read in the part mixed [default: a fifth of what is written]
    #[arg(long, value_name = "SIZE", value_parser = arguments::size)]
    read_rate: Option<u64>,
    /// How often the part files fills its directory
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    laps: u32,
    /// Run the real fio with the same job behind the part files, and compare
    #[arg(long, conflicts_with = "model")]
    pub(super) fio: bool,
    /// Write to the device of this serial number (of this kernel name, where it has none); all that
    /// it holds is lost. With --compare once for each device, in their order
    #[arg(long, value_name = "NAME")]
    destroy: Vec<String>,
    /// With --destroy: agree to the loss of content that was found, as the refusal names it; may be
    /// given several times
    #[arg(long, value_name = "KIND", requires = "destroy")]
    overwrite: Vec<String>,
    /// Write the whole report to this file, as JSON
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Go on where this report stopped: parts that it has are not measured again. The same options
    /// as before belong with it; it is written anew, unless --output names another
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    pub(super) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(super) outputs: Outputs,
}

/// Forms in which a report is written.
#[derive(Debug, Args)]
pub(super) struct Outputs {
    /// Write a page with plots to this file: HTML that stands by itself, to be shown to others
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Write tables as CSV into this new or empty folder, a file for each
    #[arg(long, value_name = "DIR")]
    pub(super) csv: Option<PathBuf>,
    /// Write each plot as SVG into this new or empty folder
    #[arg(long, value_name = "DIR")]
    pub(super) svg: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub(super) force: bool,
    /// Report as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show a report that was written with --output
    Show {
        /// The file
        file: PathBuf,
        #[command(flatten)]
        outputs: Outputs,
    },
    /// What changed from one report to another; exit code 1 when the guarantee fell
    Diff {
        /// The earlier report
        old: PathBuf,
        /// The later one
        new: PathBuf,
        /// Percent by which a rate may differ and still be the same
        #[arg(long, value_name = "PERCENT", default_value_t = 5,
            value_parser = clap::value_parser!(u64).range(1..=100))]
        tolerance: u64,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// How many of which disks a traffic needs, with which parity
    Plan(PlanFlags),
}

/// How many of which disks a traffic needs, with which parity.
///
/// For each kind of disk and each parity it names the fewest disks that carry the rate in every
/// stretch of every lap, also while a lost one is replaced, and that keep packets long enough.
/// Where even a volume of 24 members does not, it says what that volume reaches, and how many disks
/// would do.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wirespool qualify plan --rate 10G --mean 1G --days 10
  wirespool qualify plan --rate 10G --mix 640 --disk sdb.json --parity 2
  wirespool qualify plan --rate 10G --mix 640 --disk hdd-8tb --parity 2 --disks 8

Exit code 0 when something fits, 1 when nothing does, 5 when only what was read and never written
would.")]
pub(super) struct PlanFlags {
    /// Bits a second of a link that must never be lost, such as 10G
    #[arg(long, value_name = "RATE", value_parser = arguments::bits)]
    rate: u64,
    /// Bits a second over the days [default: --rate, day and night]
    #[arg(long, value_name = "RATE", value_parser = arguments::bits)]
    mean: Option<u64>,
    /// Days that packets are to be kept
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(0..=36_500))]
    days: u64,
    /// Frames of the traffic: a length in bytes, `short` (64), `long` (1514), `imix` (7 of 64, 4 of
    /// 576, 5 of 1514), or a capture file
    #[arg(long, value_name = "FRAMES", default_value = "imix")]
    mix: String,
    /// Memory between capture and disks
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = arguments::size)]
    pool: u64,
    /// A report of `qualify --output` of one such disk, or a typical one: `hdd-8tb`, `hdd-4tb`; may
    /// be given several times [default: the typical ones]
    #[arg(long = "disk", value_name = "FILE|NAME")]
    disk: Vec<String>,
    /// Disks of parity, as many as may be lost; may be given several times [default: 0, 1 and 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=2))]
    parity: Vec<u8>,
    /// With exactly so many disks, those of parity included
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MEMBERS_MAX)))]
    disks: Option<u32>,
    /// As JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// What `plan` is asked, checked.
pub(super) struct PlanAsk {
    pub(super) need: Need,
    pub(super) disks: Vec<Disk>,
    pub(super) parities: Vec<u8>,
    pub(super) members: Option<u32>,
}

impl PlanFlags {
    /// `read` reads a report.
    pub(super) fn ask(
        &self,
        read: impl Fn(&Path) -> anyhow::Result<Qualification>,
    ) -> anyhow::Result<PlanAsk> {
        let mean_bits_per_s = self.mean.unwrap_or(self.rate);
        if mean_bits_per_s > self.rate {
            let wrong = "no mean is above the rate that must never be lost";
            return Err(Usage(format!("--mean {mean_bits_per_s}: {wrong}")).into());
        }
        let mut parities = if self.parity.is_empty() { vec![0, 1, 2] } else { self.parity.clone() };
        parities.sort_unstable();
        parities.dedup();
        let least = u32::from(parities.first().copied().unwrap_or(0)) + 1;
        if self.disks.is_some_and(|disks| disks < least) {
            let wrong = "leaves none for data beside those of parity";
            return Err(Usage(format!("--disks {}: {wrong}", least - 1)).into());
        }
        let need = Need {
            bits_per_s: self.rate,
            mean_bits_per_s,
            days: self.days,
            mix: mix(&self.mix)?,
            pool_bytes: self.pool,
        };
        let names = typical_names().map(str::to_owned).to_vec();
        let names = if self.disk.is_empty() { &names } else { &self.disk };
        let disks = names.iter().map(|name| disk(name, &read)).collect::<Result<_, _>>()?;
        Ok(PlanAsk { need, disks, parities, members: self.disks })
    }
}

/// A typical disk, or else a report.
fn disk(name: &str, read: impl Fn(&Path) -> anyhow::Result<Qualification>) -> anyhow::Result<Disk> {
    if let Some(disk) = typical(name) {
        return Ok(disk);
    }
    let path = Path::new(name);
    if !path.is_file() {
        let names = typical_names().join(", ");
        return Err(Usage(format!("--disk {name}: neither a file nor one of {names}")).into());
    }
    let stem = path
        .file_stem()
        .map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned());
    let disk = Disk::qualified(&stem, &read(path)?);
    disk.with_context(|| format!("{name} says nothing of a rate"))
}

/// The subject of the measurement.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// At a path, with the size of a file that is to be made there.
    Path { path: PathBuf, size_bytes: u64, consent: Consent },
    /// A profile.
    Model { path: PathBuf, size_bytes: Option<u64>, disks: u32 },
}

impl Flags {
    pub(super) fn subject(&self) -> Result<Subject, Usage> {
        if self.rounds.is_some() || self.run_size.is_some() || !self.fact.is_empty() {
            let text = "--rounds, --run-size and --fact belong with --compare";
            return Err(Usage(text.to_owned()));
        }
        if let Some(path) = &self.model {
            let (path, size_bytes, disks) = (path.clone(), self.size, self.data_disks);
            return Ok(Subject::Model { path, size_bytes, disks });
        }
        let path = self.target.clone().unwrap_or_default();
        let size = self.size.unwrap_or(8 << 30);
        if size < SIZE_MIN {
            let size = units::ByteSize(size);
            return Err(Usage(format!("--size {size} is too small: write a file of at least 64M")));
        }
        if self.destroy.len() > 1 {
            return Err(Usage("--destroy: one device, one name".to_owned()));
        }
        let consent = self.consent(0);
        Ok(Subject::Path { path, size_bytes: size / ROW_BYTES * ROW_BYTES, consent })
    }

    /// For the device of this place among all.
    pub(super) fn consent(&self, device: usize) -> Consent {
        let destroy = self.destroy.get(device).cloned();
        Consent { destroy, overwrite: self.overwrite.clone() }
    }

    /// Names of devices that were typed.
    pub(super) fn names(&self) -> usize {
        self.destroy.len()
    }

    /// How targets are compared, and the bytes of a file that is made for it.
    pub(super) fn contest(&self) -> Result<(Contest, u64), Usage> {
        let (block_bytes, run_bytes) = (self.block, self.run_size.unwrap_or(RUN_BYTES));
        if run_bytes < block_bytes {
            return Err(Usage(format!("--run-size {run_bytes}: at least a block")));
        }
        let size = self.size.unwrap_or(RUNS_OF_FILE * run_bytes) / ROW_BYTES * ROW_BYTES;
        if size < run_bytes {
            return Err(Usage(format!("--size {size}: at least a run")));
        }
        let contest = Contest {
            rounds: self.rounds.unwrap_or(ROUNDS),
            run_bytes,
            block_bytes,
            pool_bytes: self.pool,
            verifies: true,
        };
        Ok((contest, size))
    }

    /// What is to be done on a target of `size_bytes`.
    pub(super) fn plan(&self, size_bytes: u64) -> Plan {
        let plan = match (&self.model, self.full) {
            (Some(_), _) => Plan::of_model(size_bytes),
            (None, true) => Plan::full(size_bytes),
            (None, false) => Plan::quick(size_bytes),
        };
        let mut plan = if self.parts.is_empty() { plan } else { plan.only(&self.parts) };
        plan.sweep.block_bytes = self.block;
        plan.sweep.blocks = self.blocks.unwrap_or(plan.sweep.blocks);
        plan.sweep.steps = self.steps;
        plan.sweep.align_bytes = self.align;
        plan.block_bytes = if self.model.is_some() { plan.block_bytes } else { self.block };
        plan.latency_bytes_per_s = self.offer;
        plan.readers.stream_bytes_per_s = self.read_rate.unwrap_or(0);
        plan.file_laps = self.laps;
        plan
    }

    /// The parts that were asked for by name.
    pub(super) fn named(&self) -> &[Part] {
        &self.parts
    }

    pub(super) fn ask(&self) -> anyhow::Result<Ask> {
        let array = self
            .parity_disks
            .map(|parity_disks| Array { data_disks: self.data_disks, parity_disks });
        Ok(Ask { pool_bytes: self.pool, mix: mix(&self.mix)?, bits_per_s: self.rate, array })
    }
}

/// A name, a length, or else a file.
fn mix(text: &str) -> anyhow::Result<Mix> {
    if let Some(mix) = Mix::named(text) {
        return Ok(mix);
    }
    let path = PathBuf::from(text);
    if !path.is_file() {
        let wrong = "a length from 14 to 65535, short, long, imix, or a capture file";
        return Err(Usage(format!("--mix {text}: {wrong}")).into());
    }
    let mut source = FileSource::open(&path, FileOptions::default())?;
    let mix = Mix::measured(text, &mut source)?;
    mix.with_context(|| format!("{text} holds no packets"))
}

fn part(text: &str) -> Result<Part, String> {
    text.parse().map_err(|error: ::qualify::ParsePartError| error.to_string())
}

fn block(text: &str) -> Result<u64, String> {
    let bytes = arguments::size(text)?;
    let is_valid = bytes > 0 && bytes.is_multiple_of(ROW_BYTES) && bytes <= BLOCK_BYTES_MAX;
    is_valid.then_some(bytes).ok_or_else(|| "a multiple of 4096, at most 64M".to_owned())
}

fn align(text: &str) -> Result<u64, String> {
    let bytes = arguments::size(text)?;
    let is_valid = bytes > 0 && bytes.is_multiple_of(ROW_BYTES);
    is_valid.then_some(bytes).ok_or_else(|| "a multiple of 4096, as direct I/O wants it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_rows() {
        assert_eq!((block("2M"), block("4096"), align("4K")), (Ok(2 << 20), Ok(4096), Ok(4096)));
        for text in ["0", "1000", "128M", "x"] {
            assert!(block(text).is_err(), "{text}");
        }
        assert!(align("1024").is_err());
    }

    #[test]
    fn a_mix_that_is_nothing_is_refused() {
        assert_eq!(mix("640").unwrap().mean_frame_bytes(), 640);
        let error = mix("nothing-here").unwrap_err().to_string();
        assert!(error.starts_with("--mix nothing-here: a length"), "{error}");
    }
}
