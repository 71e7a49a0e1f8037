//! The steps, one after another.

use std::path::{Path, PathBuf};

use page::safe;

use crate::answers::Answers;
use crate::choose::{self, Chosen, Storage};
use crate::ending::Ending;
use crate::machine::{Machine, Operator, Rights};
use crate::steps::{Log, Step};
use crate::{make, serve, traffic};

/// Walks through all steps; whether the recorder runs and has a session, or nothing was to be done.
///
/// # Errors
/// Where it ended early. What was done until then, and what is left, was said.
pub fn walk(
    answers: &Answers,
    machine: &dyn Machine,
    operator: &mut dyn Operator,
) -> Result<bool, Ending> {
    serve::check(answers)?;
    let rights = machine.rights();
    if answers.is_dry {
        operator.say("A dry run: nothing is written, and nothing is sent to a disk.");
    }
    tell_rights(&rights, operator);
    let mut log = Log::default();
    let ended = steps(answers, machine, operator, &rights, &mut log);
    let is_told = matches!(ended, Err(Ending::Interrupted | Ending::Refused(_)));
    if is_told && !answers.is_dry {
        operator.say(&format!("\nUntil here:\n{}", log.account()));
    }
    ended
}

/// What this user may not do, and what is left to them.
fn tell_rights(rights: &Rights, operator: &mut dyn Operator) {
    let user = safe::printable(&rights.user);
    if !rights.may_capture {
        operator.say(&format!(
            "You are {user}. You may not record from an interface: that needs the capability\n\
             CAP_NET_RAW (and CAP_NET_ADMIN for promiscuous mode, CAP_IPC_LOCK for its memory).\n  \
             sudo wirespool setup                      all of it, as root\n  \
             sudo setcap cap_net_raw,cap_net_admin,cap_ipc_lock+ep \"$(command -v wirespool)\"\n\
             What you may do: a volume in a file of yours, and import captures into it."
        ));
    }
    if !rights.is_root {
        operator.say("Disks and system services need root; a folder of yours does not.");
    }
}

fn steps(
    answers: &Answers,
    machine: &dyn Machine,
    operator: &mut dyn Operator,
    rights: &Rights,
    log: &mut Log,
) -> Result<bool, Ending> {
    let config = serve::config_path(answers, machine);
    operator.say(&Step::Interfaces.heading());
    let chosen = choose::interfaces(answers, (machine, operator), rights)?;
    let names = chosen.interfaces.join(", ");
    log.note(Step::Interfaces, if names.is_empty() { "none" } else { names.as_str() });
    stopped(operator)?;

    operator.say(&Step::Storage.heading());
    let storage = choose::storage(answers, (machine, operator))?;
    let members: Vec<String> = storage.members().iter().map(safe::path).collect();
    log.note(Step::Storage, members.join(", "));
    stopped(operator)?;

    let volume = volume(answers, (machine, operator), (&storage, &chosen, &config), log)?;
    stopped(operator)?;

    operator.say(&Step::Configuration.heading());
    serve::configuration(answers, (machine, operator), (&config, &volume), &chosen.interfaces)?;
    log.note(Step::Configuration, safe::path(&config));
    stopped(operator)?;

    operator.say(&Step::Service.heading());
    let is_awaited = serve::service(answers, (machine, operator), (&config, &volume))?;
    log.note(Step::Service, if is_awaited { "started" } else { "not started" });

    let has_recorder = !chosen.interfaces.is_empty();
    operator.say(&Step::FirstSession.heading());
    let is_found = if answers.is_dry {
        operator.say("would wait for the recorder and the first session");
        true
    } else if is_awaited && has_recorder {
        serve::first_session(answers, operator, &volume)?
    } else {
        operator.say("Nothing records yet, so none is waited for.");
        true
    };
    operator.say(&serve::next(&volume, has_recorder));
    Ok(is_found)
}

/// Steps 3 to 5; gives the path of the volume.
fn volume(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    (storage, chosen, config): (&Storage, &Chosen, &Path),
    log: &mut Log,
) -> Result<PathBuf, Ending> {
    if let Some(existing) = &storage.existing {
        operator.say(&Step::Volume.heading());
        operator.say(&make::taken(existing));
        if answers.parity.is_some_and(|parity| parity != existing.columns.1) {
            operator.say("--parity says otherwise: grow changes a volume that is there.");
        }
        for step in [Step::Qualification, Step::Geometry] {
            log.note(step, "of the volume that is there");
        }
        log.note(Step::Volume, safe::path(&existing.path));
        return Ok(existing.path.clone());
    }
    operator.say(&Step::Qualification.heading());
    let folder = config.parent().unwrap_or(Path::new("/"));
    let reports = make::qualification(answers, (machine, operator), (storage, folder))?;
    let told: Vec<String> = reports.iter().map(safe::path).collect();
    log.note(Step::Qualification, if told.is_empty() { "none".into() } else { told.join(", ") });
    stopped(operator)?;

    operator.say(&Step::Geometry.heading());
    let stored = traffic::stored_bytes_per_s(&chosen.seen, &chosen.interfaces);
    let shape = make::geometry(answers, operator, (storage, &reports), stored)?;
    log.note(Step::Geometry, format!("{}+{}", shape.data, shape.parity));
    stopped(operator)?;

    operator.say(&Step::Volume.heading());
    make::volume(answers, (machine, operator), (storage, &reports), &shape)?;
    let members = storage.members();
    // On a whole disk it lies in a partition, which has a path of its own.
    let made = if answers.is_dry { None } else { machine.volume(&members) };
    let first = members.into_iter().next().unwrap_or_default();
    let path = made.map_or(first, |made| made.path);
    log.note(Step::Volume, safe::path(&path));
    Ok(path)
}

fn stopped(operator: &dyn Operator) -> Result<(), Ending> {
    if operator.is_stopped() { Err(Ending::Interrupted) } else { Ok(()) }
}
