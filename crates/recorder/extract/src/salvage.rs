//! All packets of what is left of a volume, and an exact list of those that are not.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;

use device::{LentRead, Read, ReadAt, Reading};
use encryption::{Identities, Keyring};
use format::geometry::{Geometry, serialize_columns};
use format::head::{StripeId, VolumeId};
use packet_output::Target;
use query::Query;
use serde::{Serialize, Serializer};
use units::number::to_u64;
use units::{Clock, MemberId};
use volume::Salvaged;

use crate::archive::Archive;
use crate::extract::run;
use crate::losses::{Loss, LossSums, Losses};
use crate::packet_writer::Telling;
use crate::stopwatch::Stopwatch;
use crate::{Error, ExtractReport, Options, Progress, Request};

/// A volume that was found, before its packets are read.
#[derive(Debug)]
pub struct Salvaging {
    salvaged: Salvaged,
    unopened: Vec<Unopened>,
}

/// A device that was named and does not let itself be opened now: what it holds is not in the
/// result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unopened {
    /// Its place among those named, from 0.
    pub place: usize,
    /// What it answers, or for how long it has not.
    #[serde(serialize_with = "in_words")]
    pub error: device::Error,
}

/// Result of a salvage. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SalvageReport {
    /// Id of the volume.
    pub volume_id: VolumeId,
    /// Newest shape of the volume.
    #[serde(flatten, serialize_with = "serialize_columns")]
    pub geometry: Geometry,
    /// Some superblock was left, so that heads could be checked by their key.
    pub has_key: bool,
    /// Members that were found, and those that were not.
    pub members: Vec<MemberId>,
    /// Members of the volume that are not here.
    pub absent: Vec<MemberId>,
    /// Places of devices, as given, that hold nothing of it.
    pub strangers: Vec<usize>,
    /// Devices that fail or hang when they are opened.
    pub unopened: Vec<Unopened>,
    /// Highest watermark that the heads name.
    pub acknowledged: StripeId,
    /// The newest stripe that was read: above the watermark as far as stripes are whole.
    pub through: StripeId,
    /// The packets written.
    #[serde(rename = "packets", serialize_with = "packets")]
    pub extract: ExtractReport,
    /// What the losses come to.
    #[serde(flatten)]
    pub sums: LossSums,
    /// Nothing is lost, and it was not stopped.
    #[serde(rename = "complete")]
    pub is_complete: bool,
    /// What was stored and cannot be had, in ring order.
    pub losses: Vec<Loss>,
}

fn in_words<S: Serializer>(error: &device::Error, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(error)
}

fn packets<S: Serializer>(extract: &ExtractReport, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(extract.packets)
}

/// How often a search reports how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(100);

impl Salvaging {
    /// Looks for a volume on the members named, in any order; takes no lock and writes nothing.
    /// `progress` hears of the bytes read, at least once, and may stop the search. A device that
    /// fails or hangs when it is opened is left out as long as there are others: it is the reason
    /// why somebody salvages.
    ///
    /// # Errors
    /// Those of [`volume::salvage`]; [`device::Error::Interrupted`] when it was stopped. Those of
    /// opening, where no device can be opened, or one is named wrongly.
    pub fn find(
        members: &[PathBuf],
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        let watch = Arc::new(Watch::default());
        let open = |path: &PathBuf| -> Result<_, device::Error> {
            let inner = device::open_read(path)?;
            let watched: Box<dyn ReadAt> = Box::new(Watched { inner, watch: Arc::clone(&watch) });
            Ok(watched)
        };
        let (places, devices, unopened) = opened(device::side_by_side("open", members, open))?;
        let (answer, answered) = sync_channel(1);
        let search = move || drop(answer.send(volume::salvage(devices)));
        thread::Builder::new().name("find".to_owned()).spawn(search).map_err(Error::Thread)?;
        loop {
            let answer = answered.recv_timeout(TOLD_EVERY);
            if progress(watch.read_bytes.load(Ordering::Relaxed)).is_break() {
                watch.is_over.store(true, Ordering::Relaxed);
                return Err(device::Error::Interrupted.into());
            }
            match answer {
                Ok(found) => {
                    let mut salvaged = found?;
                    // Places among those named, not among those opened.
                    let named = salvaged.strangers.iter().filter_map(|&at| places.get(at));
                    salvaged.strangers = named.copied().collect();
                    return Ok(Self { salvaged, unopened });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the search always answers"),
            }
        }
    }
}

impl Salvaging {
    /// Decrypts what is encrypted to one of these.
    #[must_use]
    pub fn unlocked_by(mut self, identities: Option<Identities>) -> Self {
        if let Some(identities) = identities {
            let reader = &mut self.salvaged.reader;
            let volume_id = reader.superblock().volume_id.0;
            reader.unlock(Arc::new(Keyring::new(volume_id, Some(identities))));
        }
        self
    }
}

/// The places and devices that were opened, and those that fail by themselves.
type Opened = (Vec<usize>, Vec<Box<dyn ReadAt>>, Vec<Unopened>);

fn opened(results: Vec<Result<Box<dyn ReadAt>, device::Error>>) -> Result<Opened, device::Error> {
    let (mut places, mut devices, mut unopened) = (Vec::new(), Vec::new(), Vec::new());
    for (place, result) in results.into_iter().enumerate() {
        match result {
            Ok(device) => {
                places.push(place);
                devices.push(device);
            }
            Err(error) if is_of_the_device(&error) => unopened.push(Unopened { place, error }),
            Err(error) => return Err(error),
        }
    }
    match unopened.first() {
        Some(first) if devices.is_empty() => Err(first.error.clone()),
        _ => Ok((places, devices, unopened)),
    }
}

/// Whether the device itself fails, and not who named it.
fn is_of_the_device(error: &device::Error) -> bool {
    use device::Error::{GivenUp, Io, Path, Silent};
    matches!(error, Silent { .. } | GivenUp { .. } | Io { .. } | Path { .. })
}

/// What is known of a search from outside.
#[derive(Debug, Default)]
struct Watch {
    read_bytes: AtomicU64,
    /// No thread waits for it any more.
    is_over: AtomicBool,
}

/// A member whose reads are counted, and fail when no caller wants them.
#[derive(Debug)]
struct Watched {
    inner: Box<dyn ReadAt>,
    watch: Arc<Watch>,
}

impl Watched {
    fn count(&self, len: usize) {
        let bytes = to_u64(len);
        self.watch.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.watch.is_over.load(Ordering::Relaxed)
    }
}

impl ReadAt for Watched {
    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), device::Error> {
        if self.is_over() {
            return Err(device::Error::Interrupted);
        }
        self.count(into.len());
        self.inner.read_at(offset, into)
    }

    fn read_many(&self, reads: &mut [Read<'_>]) {
        if self.is_over() {
            for read in reads {
                read.result = Err(device::Error::Interrupted);
            }
            return;
        }
        self.count(reads.iter().map(|read| read.into.len()).sum());
        self.inner.read_many(reads);
    }

    fn begin<'a>(&'a self, reads: Vec<LentRead>) -> Box<dyn Reading + 'a> {
        if self.is_over() {
            // None of them is done.
            return Box::new(reads);
        }
        self.count(reads.iter().map(|read| read.bytes.len()).sum());
        self.inner.begin(reads)
    }
}

/// Writes all packets that can be had. `progress` is asked after every piece and may stop the run.
pub fn salvage(
    found: Salvaging,
    target: Target<'_>,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<SalvageReport, Error> {
    let Salvaging { salvaged, unopened } = found;
    let Salvaged { reader, has_key, strangers, acknowledged } = salvaged;
    let mut archive = Archive::of_reader(reader, &Options::default(), clock.realtime());
    let all = Query::all();
    let request = Request { whole_sessions: true, ..Request::new(&all, "salvage") };
    let mut losses = Losses::default();
    let telling = Telling { progress, losses: Some(&mut losses) };
    let extract = run(&mut archive, Stopwatch::start(clock), &request, target, telling)?;
    let (reader, membership) = (&archive.reader, archive.reader.membership());
    let losses = losses.into_list();
    Ok(SalvageReport {
        volume_id: reader.superblock().volume_id,
        geometry: *reader.geometry(),
        members: membership.present().collect(),
        absent: membership.numbers().filter(|&it| membership.of(it).is_none()).collect(),
        strangers,
        unopened,
        has_key,
        acknowledged,
        through: reader.span().map_or(acknowledged, |span| span.acknowledged),
        sums: LossSums::of(&losses, reader.geometry()),
        is_complete: losses.is_empty() && !extract.manifest.completeness.stopped,
        extract,
        losses,
    })
}

#[cfg(test)]
mod tests {
    use completeness::Completeness;
    use format::geometry::ExtentOrder;
    use manifest::{Asked, CaseInfo, Manifest};
    use units::{Sequence, Timestamp};

    use super::*;
    use crate::{Explain, NamesMet};

    const SAID: &str = r#"{
  "volume_id": "1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f",
  "data_columns": 2,
  "parity_columns": 1,
  "has_key": true,
  "members": [
    0,
    2
  ],
  "absent": [
    1
  ],
  "strangers": [
    3
  ],
  "unopened": [
    {
      "place": 4,
      "error": "given up after 3 reads that failed and took 60 s"
    }
  ],
  "acknowledged": "8.0",
  "through": "9.0",
  "packets": 5,
  "lost_packets": 1,
  "unknown_stripes": 1,
  "unknown_packets_at_most": 130816,
  "complete": false,
  "losses": [
    {
      "stripe": "3.0",
      "packets": 1,
      "of_packets": 4,
      "from_ns": 1,
      "to_ns": 2
    },
    {
      "stripe": "4.0"
    }
  ]
}"#;

    #[test]
    fn a_salvage_says_everything_under_names_that_stay() {
        let stripe = |sequence| StripeId { sequence, sub: 0 };
        let times = Some((Timestamp(1), Timestamp(2)));
        let error = device::Error::GivenUp { failed: 3, seconds: 60 };
        let geometry = Geometry {
            data_columns: 2,
            parity_columns: 1,
            order: ExtentOrder::FirstToLast,
            zones: 1,
            piece_bytes: 2 << 20,
            slots: 100,
            slot0_offset: 0,
            slots_per_extent: 1,
            usable_begin: 0,
            usable_end: 300 << 20,
        };
        let manifest = Manifest {
            case: CaseInfo::default(),
            query: String::new(),
            asked: Asked::default(),
            made: Timestamp(0),
            volume: VolumeId([0x1f; 16]),
            from: Timestamp::MIN,
            to: Timestamp::MAX,
            rows: 0,
            outputs: Vec::new(),
            pieces: Vec::new(),
            clocks: Vec::new(),
            completeness: Completeness::default(),
        };
        let extract = ExtractReport {
            packets: 5,
            rewritten_packets: 0,
            manifest,
            explain: Explain::default(),
            reader_gone: false,
            met: NamesMet::default(),
        };
        let losses = vec![
            Loss { stripe: stripe(Sequence(3)), packets: Some(1), of_packets: Some(4), times },
            Loss { stripe: stripe(Sequence(4)), packets: None, of_packets: None, times: None },
        ];
        let report = SalvageReport {
            volume_id: VolumeId([0x1f; 16]),
            geometry,
            members: vec![MemberId(0), MemberId(2)],
            absent: vec![MemberId(1)],
            strangers: vec![3],
            unopened: vec![Unopened { place: 4, error }],
            has_key: true,
            acknowledged: stripe(Sequence(8)),
            through: stripe(Sequence(9)),
            extract,
            sums: LossSums::of(&losses, &geometry),
            is_complete: false,
            losses,
        };
        assert_eq!(serde_json::to_string_pretty(&report).unwrap(), SAID);
    }

    #[test]
    fn a_search_tells_what_it_reads_and_can_be_stopped() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 << 20).unwrap();
        let members = [file.path().to_owned()];
        let mut read_bytes = 0;
        let nothing = Salvaging::find(&members, &mut |bytes| {
            read_bytes = bytes;
            ControlFlow::Continue(())
        });
        assert!(matches!(nothing, Err(Error::Volume(volume::Error::NothingFound))));
        assert!(read_bytes > 60 << 20, "all of it was looked through: {read_bytes}");
        let stopped = Salvaging::find(&members, &mut |_| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(Error::Device(device::Error::Interrupted))));
    }
}
