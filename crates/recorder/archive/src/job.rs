//! The job: part after part of a volume into the store, once or for as long as it is recorded.

use core::ops::ControlFlow;

use completeness::{Completeness, State};
use extract::PartReport;
use format::head::StripeId;
use units::number::to_u64;
use units::{NANOS_PER_SECOND, Timestamp};

use crate::Error;
use crate::event::{Behind, Event, Report};
use crate::manifest::{Manifest, Object, OpenObject, Pending, VERSION};
use crate::manners::{LOOK_NS, rest_after};
use crate::names::{self, Sensor, Unit};
use crate::open_sessions;
use crate::part::{PartObjects, Whose, commit, store};
use crate::resume::{Memory, Position, is_there, resume};
use crate::source::{Bounds, Source};
use crate::store::StoreError;
use crate::table::{Lost, SCHEMA_VERSION};
use crate::uploader::Uploader;

/// Looks in a row at which a part cannot be read.
const FAILURES_MAX: u32 = 3;
/// A look is no older than this when a part is read.
const LOOK_AGE_NS: i64 = 10 * NANOS_PER_SECOND;

/// What is archived, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose sessions they are.
    pub sensor: Sensor,
    /// As long as it is recorded, and beyond, until it is stopped.
    pub follow: bool,
}

/// Archives what is closed and not archived, once or, with `follow`, until it is stopped. What is
/// known of losses is archived with it.
pub fn archive(
    options: &Options,
    source: &mut dyn Source,
    uploader: &mut Uploader<'_>,
    memory: &dyn Memory,
) -> Result<Report, Error> {
    let mut run = Run {
        options,
        source,
        uploader,
        memory,
        position: Position::default(),
        report: Report::default(),
        latest: None,
        made_again: Vec::new(),
    };
    let ended = run.all();
    let mut report = run.report;
    report.open_sessions = to_u64(run.position.open.len());
    report.archive_state = run.position.state.max(report.state());
    match ended {
        Ok(()) => Ok(report),
        Err(Error::Store(StoreError::Stopped)) => {
            report.is_stopped = true;
            // One that follows a recording has no other end.
            report.completeness.stopped |= !options.follow;
            Ok(report)
        }
        Err(error) => Err(error),
    }
}

struct Run<'a, 'u> {
    options: &'a Options,
    source: &'a mut dyn Source,
    uploader: &'a mut Uploader<'u>,
    memory: &'a dyn Memory,
    position: Position,
    report: Report,
    /// The latest packet of what was archived by this run.
    latest: Option<Timestamp>,
    /// Objects of the part at hand that a killed run has left.
    made_again: Vec<String>,
}

/// What a part was read to.
#[derive(Default)]
struct PartRead {
    report: PartReport,
    /// What is lost besides.
    lost: Vec<Lost>,
    overwritten_slots: u64,
}

impl Run<'_, '_> {
    fn all(&mut self) -> Result<(), Error> {
        let sensor = &self.options.sensor;
        self.position = resume(self.uploader, self.memory, sensor, self.source.volume())?;
        self.uploader.tell(&Event::Begun {
            volume: self.source.volume().to_string(),
            behind: self.position.through.map(|through| through.to_string()),
            open_sessions: to_u64(self.position.open.len()),
        });
        let (mut was_waiting, mut failures) = (false, 0);
        loop {
            let is_all = match self.closed_parts() {
                Ok(is_all) => {
                    failures = 0;
                    is_all
                }
                // The ring may have passed what was read.
                Err(Error::Extract(error)) if failures < FAILURES_MAX => {
                    failures += 1;
                    self.begin_again(&error)?;
                    false
                }
                Err(error) => return Err(error),
            };
            self.note_lag();
            if !is_all {
                was_waiting = false;
            } else if self.options.follow {
                if !core::mem::replace(&mut was_waiting, true) {
                    self.uploader.tell(&Event::Waiting { behind: self.report.behind });
                }
                self.uploader.rest(LOOK_NS)?;
            } else {
                if self.source.is_over() {
                    self.report.completeness.add(&self.source.doubts());
                }
                return Ok(());
            }
            self.source.look()?;
        }
    }

    /// After a part could not be read: goes on from what is in the store.
    fn begin_again(&mut self, error: &extract::Error) -> Result<(), Error> {
        let text = format!("cannot read a part of the volume: {error}; it is tried again");
        self.uploader.tell(&Event::Remark { text: page::safe::printable(&text) });
        self.uploader.rest(LOOK_NS)?;
        let sensor = &self.options.sensor;
        self.position = resume(self.uploader, self.memory, sensor, self.source.volume())?;
        Ok(())
    }

    fn note_lag(&mut self) {
        let lag = self.source.lag(self.position.through);
        self.report.behind =
            Behind { lag_ns: lag.ns, lag_slots: lag.slots, ring_slots: lag.of_slots };
    }

    /// A volume that was put back to an older state gives out the numbers of stripes again, from
    /// there on: what is recorded under them is not what is archived.
    fn check_same(&self) -> Result<(), Error> {
        let Some(through) = self.position.through else { return Ok(()) };
        let is_gone = self.source.newest().is_none_or(|newest| newest < through);
        let mark = self.source.mark(through).zip(self.position.mark.as_ref());
        if !is_gone && mark.is_none_or(|(now, archived)| now == *archived) {
            return Ok(());
        }
        let sensor = self.options.sensor.to_string();
        Err(Error::PutBack { through: through.to_string(), sensor })
    }

    /// Archives the parts that are closed now; whether these were all before the look was too old.
    fn closed_parts(&mut self) -> Result<bool, Error> {
        self.check_same()?;
        let looked = self.uploader.clock().boottime_ns();
        let parts = self.source.parts(self.position.through);
        let lost = |through| Some((through, self.source.lost_behind(through)?));
        let mut overwritten = self.position.through.and_then(lost);
        for (place, bounds) in parts.iter().enumerate() {
            let begun = self.uploader.clock().boottime_ns();
            if begun - looked > LOOK_AGE_NS {
                return Ok(false);
            }
            self.part(place, bounds, overwritten.take())?;
            if !self.source.is_over() {
                let took = self.uploader.clock().boottime_ns() - begun;
                self.uploader.rest(rest_after(took))?;
            }
        }
        if self.source.is_over() && !self.position.open.is_empty() {
            self.end()?;
        }
        Ok(true)
    }

    fn part(
        &mut self,
        place: usize,
        bounds: &Bounds,
        overwritten: Option<(StripeId, StripeId)>,
    ) -> Result<(), Error> {
        let unit = Unit { first: bounds.first, last: bounds.last, is_end: false };
        let mut lost = Vec::new();
        let mut overwritten_slots = 0;
        if let Some((through, last)) = overwritten {
            let found = self.overwritten((through, last), bounds);
            overwritten_slots = found.slots.unwrap_or_default();
            lost.push(found);
        }
        if core::mem::take(&mut self.position.has_lost_open) {
            self.report.has_lost_open = true;
            lost.push(Lost { to: Some(bounds.time_min), ..Lost::new("damage") });
        }
        let options = self.options;
        let whose = Whose { sensor: &options.sensor, volume: self.source.volume(), unit };
        let mut objects = PartObjects::new(whose);
        self.settle_left(&whose, &mut objects)?;
        let behind = self.position.through;
        let (uploader, source) = (&mut *self.uploader, &mut *self.source);
        let mut failed = Ok(());
        let report = source.read(place, &mut self.position.open, &mut |found| {
            if uploader.is_to_stop() {
                failed = Err(StoreError::Stopped.into());
            } else if objects.push(found) {
                failed = store_some(uploader, &whose, &mut objects, behind);
            }
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        failed?;
        self.finish(&whose, objects, PartRead { report, lost, overwritten_slots })
    }

    /// Behind the last part no recorder ran: what was open is over.
    fn end(&mut self) -> Result<(), Error> {
        let Some(last) = self.position.through else { return Ok(()) };
        let unit = Unit { first: last, last, is_end: true };
        let options = self.options;
        let whose = Whose { sensor: &options.sensor, volume: self.source.volume(), unit };
        let mut objects = PartObjects::new(whose);
        self.settle_left(&whose, &mut objects)?;
        let behind = self.position.through;
        let uploader = &mut *self.uploader;
        let mut failed = Ok(());
        let flow = self.position.open.end(&mut |found| {
            if objects.push(found) {
                failed = store_some(uploader, &whose, &mut objects, behind);
            }
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        failed?;
        assert!(flow.is_continue(), "only a failure breaks it off");
        self.finish(&whose, objects, PartRead::default())
    }

    fn overwritten(&mut self, (through, last): (StripeId, StripeId), next: &Bounds) -> Lost {
        let first = through.after();
        let slots = last.sequence.next().since(first.sequence);
        self.uploader.tell(&Event::Overwritten {
            first: first.to_string(),
            last: last.to_string(),
            slots,
        });
        self.report.overwritten_slots = self.report.overwritten_slots.saturating_add(slots);
        Lost {
            from: self.latest,
            to: Some(next.time_min).filter(|time| *time > Timestamp::MIN),
            stripes: Some((first, last)),
            slots: Some(slots),
            ..Lost::new("overwritten")
        }
    }

    /// Decides what becomes of objects that a killed run has left: those of this part are made
    /// again under the same names, those of stripes that cannot be read any more are taken over,
    /// and others, whose rows will be in objects of other names, are removed.
    fn settle_left(
        &mut self,
        whose: &Whose<'_>,
        objects: &mut PartObjects<'_>,
    ) -> Result<(), Error> {
        let Some(left) = self.position.left.take() else { return Ok(()) };
        if left.manifest.unit() == Some(whose.unit) {
            self.made_again = left.manifest.objects.into_iter().map(|it| it.name).collect();
            return Ok(());
        }
        let is_gone = left.manifest.last() < Some(whose.unit.first);
        for object in left.manifest.objects {
            if !is_gone {
                self.uploader.delete(&object.name)?;
            } else if is_there(self.uploader, &object)? {
                objects.take_over(object);
            }
        }
        Ok(())
    }

    fn finish(
        &mut self,
        whose: &Whose<'_>,
        mut objects: PartObjects<'_>,
        read: PartRead,
    ) -> Result<(), Error> {
        let PartRead { report, mut lost, overwritten_slots } = read;
        let is_cut = !lost.is_empty();
        lost.extend(losses(&report));
        let mut files = objects.files()?;
        files.extend(objects.loss_files(&lost)?);
        let open = self.open_object(whose)?;
        let mut manifest = manifest(whose, &objects, self.position.through);
        let known = report.gaps.iter().filter_map(|gap| gap.packets);
        manifest.lost_packets = known.fold(0, u64::saturating_add);
        manifest.overwritten_slots = overwritten_slots;
        let state = report.completeness.state();
        let state = if is_cut { State::Incomplete } else { state };
        state.name().clone_into(&mut manifest.state);
        let archive_state = self.position.state.max(state);
        manifest.archive_state = Some(archive_state.name().to_owned());
        manifest.open = open.as_ref().map(|(open, _)| open.clone());
        let mark = self.source.mark(whose.unit.last);
        manifest.mark.clone_from(&mark);
        let pending = Pending { is_whole: true, manifest };
        if let Some((open, bytes)) = open {
            files.push((open.object.name, bytes));
        }
        let bytes = store(self.uploader, whose, &pending, &files)?;
        for name in core::mem::take(&mut self.made_again) {
            if !objects.objects.iter().any(|object| object.name == name) {
                self.uploader.delete(&name)?;
            }
        }
        let name = commit(self.uploader, whose, &pending.manifest)?;
        self.memory.remember(whose.volume, &name);
        (self.position.state, self.position.mark) = (archive_state, mark);
        self.archived(whose.unit, &objects, (&report, bytes));
        let open = pending.manifest.open.map(|open| open.object.name);
        if let Some(old) = core::mem::replace(&mut self.position.open_name, open) {
            self.uploader.delete(&old)?;
        }
        Ok(())
    }

    fn open_object(&self, whose: &Whose<'_>) -> Result<Option<(OpenObject, Vec<u8>)>, Error> {
        let open = &self.position.open;
        if open.is_empty() {
            return Ok(None);
        }
        let bytes = open_sessions::write(open, whose.volume, whose.unit.last)?;
        let name = names::open_sessions(whose.sensor, whose.volume, whose.unit);
        let object = Object::of(name, &bytes, open.len());
        Ok(Some((OpenObject { object, epoch: open.epoch() }, bytes)))
    }

    /// A part is archived.
    fn archived(
        &mut self,
        unit: Unit,
        objects: &PartObjects<'_>,
        (report, bytes): (&PartReport, u64),
    ) {
        self.position.through = Some(unit.last);
        self.latest = self.latest.max(report.latest);
        let stored = to_u64(objects.objects.len());
        let own = &mut self.report;
        own.parts = own.parts.saturating_add(u64::from(!unit.is_end));
        own.sessions = own.sessions.saturating_add(objects.sessions);
        own.objects = own.objects.saturating_add(stored);
        own.bytes = own.bytes.saturating_add(bytes);
        own.cut_sessions = self.position.open.cut();
        own.add(&report.completeness);
        self.note_lag();
        self.uploader.tell(&Event::Archived {
            first: unit.first.to_string(),
            last: unit.last.to_string(),
            sessions: objects.sessions,
            objects: stored,
            bytes,
            open_sessions: to_u64(self.position.open.len()),
            behind: self.report.behind,
        });
    }
}

/// Stores what is held of a part before all of it is read.
fn store_some(
    uploader: &mut Uploader<'_>,
    whose: &Whose<'_>,
    objects: &mut PartObjects<'_>,
    behind: Option<StripeId>,
) -> Result<(), Error> {
    let files = objects.files()?;
    let pending = Pending { is_whole: false, manifest: manifest(whose, objects, behind) };
    store(uploader, whose, &pending, &files).map(|_| ())
}

fn manifest(whose: &Whose<'_>, objects: &PartObjects<'_>, behind: Option<StripeId>) -> Manifest {
    let Unit { first, last, is_end } = whose.unit;
    Manifest {
        version: VERSION,
        schema: SCHEMA_VERSION,
        sensor: whose.sensor.to_string(),
        volume: whose.volume.to_string(),
        first: first.to_string(),
        last: last.to_string(),
        mark: None,
        is_end,
        behind: behind.map(|behind| behind.to_string()),
        sessions: objects.sessions,
        lost_packets: 0,
        overwritten_slots: 0,
        state: State::Complete.name().to_owned(),
        archive_state: None,
        objects: objects.objects.clone(),
        open: None,
    }
}

/// What a part says of packets that are missing.
fn losses(report: &PartReport) -> Vec<Lost> {
    let gaps = report.gaps.iter().map(|gap| Lost {
        interface: gap.interface,
        packets: gap.packets,
        bytes: gap.bytes,
        from: Some(gap.from),
        to: Some(gap.to),
        ..Lost::new(gap.cause.name())
    });
    let Completeness { damage, left_out_packets, retired_pieces, .. } = &report.completeness;
    // Where heads are damaged there is no time: that of the part's packets is near.
    let time = report.latest;
    let damaged = damage.iter().map(|damage| {
        let stripes = Some((damage.stripe, damage.stripe));
        Lost { stripes, to: time, ..Lost::new("damage") }
    });
    let counted = [("left_out", *left_out_packets, true), ("overwritten", *retired_pieces, false)];
    let counted =
        counted.into_iter().filter(|(_, count, _)| *count > 0).map(|(cause, count, is)| {
            let packets = is.then_some(count);
            Lost { packets, to: time, ..Lost::new(cause) }
        });
    gaps.chain(damaged).chain(counted).collect()
}
