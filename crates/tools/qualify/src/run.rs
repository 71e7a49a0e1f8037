//! All parts of a plan, one after another, and the verdict.

use units::Timestamp;

use crate::bench::Bench;
use crate::error::Error;
use crate::number::between;
use crate::parts;
use crate::plan::{Ask, Plan};
use crate::report::{Qualification, Target, TargetKind};
use crate::verdict::judge;

/// Runs the parts of the plan for which the bench has what they need. Ends early, and
/// says so, when the caller stops it.
pub fn run(
    bench: Bench<'_>,
    target: Target,
    plan: &Plan,
    ask: &Ask,
) -> Result<Qualification, Error> {
    go_on(bench, target, (plan, ask), None, &mut |_| Ok(()))
}

/// The same, going on behind an earlier run of the same target: parts that it finished are not run
/// again. `keep` is given what there is after each part, as if it had been stopped there.
pub fn go_on(
    mut bench: Bench<'_>,
    target: Target,
    (plan, ask): (&Plan, &Ask),
    earlier: Option<Qualification>,
    keep: &mut dyn FnMut(&Qualification) -> Result<(), Error>,
) -> Result<Qualification, Error> {
    let begin_ns = bench.now_ns();
    let mut found = match earlier {
        Some(earlier) => {
            resumable(&earlier, &target, ask)?;
            without_unfinished(earlier)
        }
        None => begun(bench.clock.realtime()),
    };
    for range in &found.written {
        bench.written.add(range.start, range.end - range.start);
    }
    let (before_ns, finished) = (found.ns, core::mem::take(&mut found.parts));
    found = Qualification { target, ..found };
    for part in plan.parts_with(bench.provided()) {
        let done = finished.iter().find(|done| done.part() == part).cloned();
        let is_new = done.is_none();
        if is_new && bench.is_interrupted {
            continue;
        }
        let result = match done {
            Some(done) => done,
            None => parts::run(&mut bench, part, plan, (&found.parts, ask.pool_bytes))?,
        };
        found.parts.push(result);
        if is_new {
            found.unfinished = bench.is_interrupted.then_some(part);
            summed_up(
                &mut found,
                &bench,
                (plan, ask),
                before_ns + between(begin_ns, bench.now_ns()),
            );
            keep(&Qualification { is_interrupted: true, ..found.clone() })?;
        }
    }
    summed_up(&mut found, &bench, (plan, ask), before_ns + between(begin_ns, bench.now_ns()));
    Ok(found)
}

/// Everything of a qualification that follows from its parts so far.
fn summed_up(found: &mut Qualification, bench: &Bench<'_>, (plan, ask): (&Plan, &Ask), ns: u64) {
    found.ns = ns;
    found.is_interrupted = bench.is_interrupted;
    found.notes = bench.writer.as_deref().map_or_else(Vec::new, |writer| writer.notes().to_vec());
    found.notes.extend(found.target.cuts(plan.block_bytes));
    found.notes.extend(bench.changed.as_ref().map(|changed| format!("stopped: {changed}")));
    found.written = bench.written.clone().into_ranges();
    found.verdict = judge((&found.target, plan), &found.parts, bench.is_interrupted, ask);
}

/// Nothing yet.
fn begun(started: Timestamp) -> Qualification {
    let path = String::new();
    let target = Target {
        kind: TargetKind::File,
        path,
        size_bytes: 0,
        layers: Vec::new(),
        is_in_memory: false,
        limits: Vec::new(),
    };
    Qualification {
        target,
        started,
        ns: 0,
        parts: Vec::new(),
        verdict: None,
        written: Vec::new(),
        written_bytes: None,
        meanwhile: None,
        is_interrupted: false,
        unfinished: None,
        notes: Vec::new(),
    }
}

/// Whether a report can be gone on with: it is of this target, and was judged with this pool.
pub fn resumable(earlier: &Qualification, target: &Target, ask: &Ask) -> Result<(), Error> {
    if let Some(what) = difference(&earlier.target, target) {
        return Err(Error::OtherTarget { what });
    }
    let pool = earlier.verdict.as_ref().map(|verdict| verdict.pool_bytes);
    match pool.filter(|pool| *pool != ask.pool_bytes) {
        Some(was_bytes) => Err(Error::OtherPool { was_bytes }),
        None => Ok(()),
    }
}

/// What an earlier run finished.
fn without_unfinished(mut earlier: Qualification) -> Qualification {
    let unfinished = earlier.unfinished.take();
    earlier.parts.retain(|part| Some(part.part()) != unfinished);
    earlier
}

/// In what two targets differ; `None` of the same one. A file of our own has another name each
/// time, and the same disk and size.
fn difference(was: &Target, is: &Target) -> Option<&'static str> {
    let disks = |target: &Target| -> Vec<(String, Option<String>)> {
        target.layers.iter().map(|layer| (layer.name.clone(), layer.serial.clone())).collect()
    };
    let is_same_path = was.path == is.path || was.kind == TargetKind::OwnFile;
    match is_same_path {
        _ if was.kind != is.kind => Some("kind"),
        _ if was.size_bytes != is.size_bytes => Some("size"),
        _ if disks(was) != disks(is) => Some("disk"),
        false => Some("path"),
        true => None,
    }
}
