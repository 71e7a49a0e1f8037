//! Runs: write, crash, mount, again and again, under one seed.

use crate::model::{Geometry, Scenario, Sim, Stats, Stop};
use crate::mutants::Mutant;

/// One run; the error says which promise broke.
pub(crate) fn run(
    seed: u64,
    geometry: &Geometry,
    (scenario, mutant): (Scenario, Mutant),
    stats: &mut Stats,
) -> Result<(), String> {
    stats.runs += 1;
    let mut sim = Sim::new(seed, geometry, (scenario, mutant), stats);
    if scenario == Scenario::Faulty {
        sim.choose_restless();
    }
    let cycles = 12 + sim.rng.below(20);
    for _ in 0..cycles {
        let up = mount_until_up(&mut sim).and_then(|()| record_until_crash(&mut sim));
        match up {
            Ok(()) => {}
            Err(Stop::Violation(what)) => return Err(what),
            Err(stop) => return Err(format!("{stop:?} outside a mount")),
        }
    }
    Ok(())
}

fn record_until_crash(sim: &mut Sim<'_>) -> Result<(), Stop> {
    let died = match record(sim) {
        Err(Stop::Crashed) => true,
        up => up.map(|()| false)?,
    };
    if !died && sim.rng.percent(15) {
        sim.stop();
    }
    sim.check_reader()?;
    sim.crash();
    for _ in 0..sim.rng.below(3) {
        sim.rot();
    }
    Ok(())
}

fn record(sim: &mut Sim<'_>) -> Result<(), Stop> {
    let share_of_seals = 10 + sim.rng.below(30);
    let share_of_completions = share_of_seals + 30 + sim.rng.below(30);
    for _ in 0..sim.rng.below(sim.geometry.slots * sim.geometry.members() * 6) {
        match sim.rng.below(100) {
            dice if dice < share_of_seals => sim.seal(),
            dice if dice < share_of_completions => sim.complete(),
            dice if dice < 98 => sim.flush_one(),
            _ => sim.rot(),
        }
        if sim.churn > 0 {
            match sim.rng.below(1000) {
                dice if dice < sim.churn => sim.members_change()?,
                dice if dice < 200 => sim.resilver_step(),
                dice if dice < 225 => sim.resilver_cursor()?,
                _ => {}
            }
        }
        if sim.rng.below(100) == 0 {
            sim.check_reader()?;
        }
    }
    Ok(())
}

fn mount_until_up(sim: &mut Sim<'_>) -> Result<(), Stop> {
    let mut refusals = 0;
    loop {
        sim.reconcile();
        choose_absent(sim, refusals);
        sim.check_reader()?;
        sim.stopped = false;
        let blank = if refusals == 0 { replace_absent(sim) } else { 0 };
        let most = 4 * sim.geometry.window + 13 * sim.members.len() + 4;
        sim.points_left = sim.rng.percent(30).then(|| 1 + sim.rng.below(most));
        let mounted = sim.mount(blank);
        sim.stats.without += u64::from(mounted.is_ok() && sim.gone != 0);
        sim.gone = 0;
        match mounted {
            Ok(()) => break,
            Err(Stop::Refused) if refusals < 2 => {
                refusals += 1;
                sim.stats.refused += 1;
            }
            Err(Stop::Refused) => {
                return Err(Stop::Violation("refused with every member present".to_owned()));
            }
            Err(Stop::Crashed) => sim.crash(),
            Err(violation) => return Err(violation),
        }
    }
    sim.points_left = None;
    sim.check_reader()?;
    if sim.scenario == Scenario::Faulty && sim.rng.percent(15) {
        sim.scrub();
    }
    Ok(())
}

fn choose_absent(sim: &mut Sim<'_>, refusals: usize) {
    for seat in 0..sim.members.len() {
        let restless = sim.restless >> seat & 1 == 1;
        sim.members[seat].present = !(restless && refusals == 0 && sim.rng.percent(25));
    }
    if sim.scenario == Scenario::Honest && refusals == 0 {
        for _ in 0..sim.known.shape().parity {
            if sim.rng.percent(35) {
                let seat = sim.rng.below(sim.members.len());
                sim.members[seat].present = false;
            }
        }
        sim.plug_wrong_devices();
        sim.say_gone();
    }
}

/// At a mount a blank device may take the place of one that is not at hand.
fn replace_absent(sim: &mut Sim<'_>) -> usize {
    if sim.scenario == Scenario::Rot || sim.churn == 0 || !sim.rng.percent(10) {
        return 0;
    }
    match sim.seat_to_replace() {
        Some(seat) if !sim.members[seat].present => {
            sim.insert_blank(seat);
            sim.stats.replaced += 1;
            1 << seat
        }
        _ => 0,
    }
}
