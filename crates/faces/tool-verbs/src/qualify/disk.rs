//! Measures one target that lies on this machine.

use core::ops::ControlFlow;

use ::qualify::{
    Ask, Error, Part, Plan, Provided, Qualification, Target, TargetKind, WrittenBytes,
    go_on as measure,
};
use host::{StopFlag, SystemClock};

use super::flags::Flags;
use super::keep::Kept;
use super::{fio, reports};
use crate::progress::{Progress, say};

/// Says how long it takes, measures, and leaves the target as promised.
pub(super) fn on_disk(
    mut opened: ::qualify::Opened,
    flags: &Flags,
    (ask, kept): (&Ask, &mut Kept),
    stop: &StopFlag,
) -> anyhow::Result<Qualification> {
    let target = opened.target.clone();
    let plan = opened.fitted(flags.plan(target.size_bytes), flags.named())?;
    refuse_what_cannot_run(flags.named(), &target, opened.provided())?;
    kept.check(&target, ask)?;
    let fio = fio::find(flags.fio, &plan, &opened)?;
    for path in &opened.left_over {
        say(&format!("removed {}, which a killed run had left", page::safe::path(path)));
    }
    announce(&opened, &plan)?;
    let mut shown = Shown::new(stop);
    let mut hear = |part, done, total| shown.hear(part, done, total);
    let bench = opened.bench(&SystemClock, reports::seed()?, &mut hear);
    let earlier = kept.take_earlier();
    let mut keep = |found: &Qualification| kept.keep(found);
    let found = measure(bench, target, (&plan, ask), earlier, &mut keep);
    shown.finish();
    let found = found.map_err(anyhow::Error::from).and_then(|mut found| {
        if let Some(fio) = &fio {
            fio.run(&mut found, &plan, (&opened, stop))?;
        }
        found.meanwhile = Some(opened.meanwhile());
        let before = found.written_bytes.map_or(0, |written| written.own);
        found.written_bytes = opened
            .written_bytes()
            .map(|written| WrittenBytes { own: written.own.saturating_add(before), ..written });
        Ok(found)
    });
    // After an error the target is cleared up as well, and the error is what counts.
    match found {
        Ok(found) => {
            opened.close(!found.written.is_empty())?;
            Ok(found)
        }
        Err(error) => {
            drop(opened);
            Err(error)
        }
    }
}

/// A part that was asked for by name runs, or it is said why not.
pub(super) fn refuse_what_cannot_run(
    named: &[Part],
    target: &Target,
    provided: Provided,
) -> Result<(), Error> {
    match named.iter().find(|part| !part.runs_with(provided)) {
        None => Ok(()),
        Some(Part::Files) => Err(Error::NoFolder),
        Some(Part::Cpu) => Err(Error::NoProcessor),
        Some(&part) => {
            let is_device = target.kind == TargetKind::Device;
            Err(Error::ReadOnly { part, path: target.path.clone().into(), is_device })
        }
    }
}

fn announce(opened: &::qualify::Opened, plan: &Plan) -> anyhow::Result<()> {
    let (size, provided) = (opened.target.size_bytes, opened.provided());
    let bytes_per_s = opened.first_look(&SystemClock)?;
    let fixed_ns = units::nanos(plan.fixed_time(provided));
    let parts: Vec<&str> = plan.parts_with(provided).map(Part::name).collect();
    let estimate =
        qualify_view::qualify_estimate(plan.bytes(size, provided), bytes_per_s, fixed_ns);
    say(&format!("qualify: {}: {estimate}", parts.join(", ")));
    Ok(())
}

/// Progress of one part after another.
pub(super) struct Shown<'a> {
    stop: &'a StopFlag,
    part: Option<(Part, Progress)>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(stop: &'a StopFlag) -> Self {
        Self { stop, part: None }
    }

    pub(super) fn hear(&mut self, part: Part, done: u64, total: u64) -> ControlFlow<()> {
        if self.part.as_ref().is_none_or(|(shown, _)| *shown != part) {
            self.finish_part();
        }
        let (_, progress) = self.part.get_or_insert_with(|| (part, Progress::new("qualify")));
        progress.share(done, total, &|_| {
            let percent = u128::from(done) * 100 / u128::from(total.max(1));
            format!("{part} {percent} %")
        });
        self.stop.flow()
    }

    fn finish_part(&mut self) {
        if let Some((_, progress)) = self.part.take() {
            progress.finish();
        }
    }

    pub(super) fn finish(mut self) {
        self.finish_part();
    }
}
