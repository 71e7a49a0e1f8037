//! All packets of what is left of a volume, and an exact list of those that are not.

use core::ops::ControlFlow;
use std::path::PathBuf;

use format::geometry::Geometry;
use format::head::{StripeId, VolumeId};
use query::Query;
use units::Clock;
use volume::Salvaged;

use crate::archive::Archive;
use crate::explain::Stopwatch;
use crate::extract::{Telling, run};
use crate::losses::{Loss, Losses};
use crate::{Error, ExtractReport, Options, Progress, Request, Target};

/// A volume that was found, before its packets are read.
#[derive(Debug)]
pub struct Salvaging {
    salvaged: Salvaged,
}

/// What was salvaged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SalvageReport {
    /// The volume.
    pub volume_id: VolumeId,
    /// Its newest shape.
    pub geometry: Geometry,
    /// Members that were found, and those that were not.
    pub members: Vec<u8>,
    /// Members of the volume that are not here.
    pub absent: Vec<u8>,
    /// Places of devices, as given, that hold nothing of it.
    pub strangers: Vec<usize>,
    /// Some superblock was left, so that heads could be told from forgeries by their key.
    pub has_key: bool,
    /// Highest watermark that the heads name.
    pub acknowledged: StripeId,
    /// The newest stripe that was read: above the watermark as far as stripes are whole.
    pub through: StripeId,
    /// The packets written.
    pub extract: ExtractReport,
    /// What was stored and cannot be had, in ring order.
    pub losses: Vec<Loss>,
}

impl Salvaging {
    /// Looks for a volume on the members named, in any order; takes no lock and writes nothing.
    pub fn find(members: &[PathBuf]) -> Result<Self, Error> {
        let devices = members.iter().map(|path| device::open_read(path));
        Ok(Self { salvaged: volume::salvage(devices.collect::<Result<_, _>>()?)? })
    }
}

/// Writes all packets that can be had. `progress` is asked after every piece and may stop the run.
pub fn salvage(
    found: Salvaging,
    target: Target<'_>,
    clock: &dyn Clock,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<SalvageReport, Error> {
    let Salvaged { reader, has_key, strangers, acknowledged } = found.salvaged;
    let mut archive = Archive::of_reader(reader, &Options::default(), clock.realtime());
    let all = Query::all();
    let request = Request { query: &all, query_text: "salvage", whole_sessions: true, slots: None };
    let mut losses = Losses::default();
    let telling = Telling { progress, losses: Some(&mut losses) };
    let extract = run(&mut archive, Stopwatch::start(clock), &request, target, telling)?;
    let (reader, membership) = (&archive.reader, archive.reader.membership());
    Ok(SalvageReport {
        volume_id: reader.superblock().volume_id,
        geometry: *reader.geometry(),
        members: membership.present().collect(),
        absent: membership.numbers().filter(|&it| membership.of(it).is_none()).collect(),
        strangers,
        has_key,
        acknowledged,
        through: reader.span().map_or(acknowledged, |span| span.acknowledged),
        extract,
        losses: losses.into_list(),
    })
}
