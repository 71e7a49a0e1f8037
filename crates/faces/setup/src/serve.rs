//! Configuration, service and the first session.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::path::{Path, PathBuf};

use page::safe;

use crate::answers::Answers;
use crate::asking::{Question, answer, yes_or_no};
use crate::config::{Config, difference, is_name};
use crate::ending::Ending;
use crate::machine::{Machine, Manager, Operator, Words};
use crate::make::{run, shown};

const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8420);
/// Name of the first token.
const TOKEN: &str = "setup";
const TOKENS: &str = "tokens";
const SCOPES: &str = "sessions,payload,extract";
/// What the unit of the package reads and may write to.
const UNIT_CONFIG: &str = "/etc/wirespool/wirespool.toml";
const UNIT_STATE: &str = "/var/lib/wirespool";
/// Between two looks whether the recorder runs.
const LOOK: Duration = Duration::from_millis(500);

/// What would never start is refused before anything is made.
pub(crate) fn check(answers: &Answers) -> Result<(), Ending> {
    if !is_name(&answers.name) {
        let name = safe::printable(&answers.name);
        let why = format!("--name {name}: letters, digits, dashes and underscores");
        return Err(Ending::Wrong(why));
    }
    // The configuration is UTF-8, and so are the words of verbs.
    let paths = answers.members.iter().chain(&answers.folders).chain(&answers.config);
    if let Some(path) = paths.into_iter().find(|path| path.to_str().is_none()) {
        return Err(Ending::Wrong(format!("{}: the path must be UTF-8", safe::path(path))));
    }
    match answers.listen {
        Some(listen) if !listen.ip().is_loopback() => Err(Ending::Wrong(format!(
            "--listen {listen}: beyond this machine the API needs TLS; set it up here first, then \
             add tls_cert and tls_key to the configuration"
        ))),
        _ => Ok(()),
    }
}

/// Writes the configuration file and the first token.
pub(crate) fn configuration(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    (path, volume): (&Path, &Path),
    interfaces: &[String],
) -> Result<(), Ending> {
    let token_file = path.with_file_name(TOKENS);
    let config = Config {
        name: answers.name.clone(),
        volume: volume.to_path_buf(),
        interfaces: interfaces.to_vec(),
        listen: answers.listen.unwrap_or(LISTEN),
        token_file: token_file.clone(),
    };
    write(answers, (machine, operator), path, &config.text())?;
    token(answers, (machine, operator), &token_file)?;
    let words = words(&["config", "check", &path.to_string_lossy()]);
    run(answers, operator, &words)
}

fn write(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    path: &Path,
    text: &str,
) -> Result<(), Ending> {
    let shown = safe::path(path);
    let there = machine.read(path);
    match &there {
        Some(old) if old == text => {
            operator.say(&format!("{shown} is there, as it would be written."));
            return Ok(());
        }
        Some(old) => {
            operator
                .say(&format!("{shown} is there, and would change:\n{}", difference(old, text)));
            if !answers.replaces && !answers.is_dry {
                let why = format!("{shown} is there and differs; --force replaces it");
                return Err(Ending::Refused(why));
            }
        }
        None => {
            let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
            let verb = if answers.is_dry { "would be" } else { "is" };
            operator.say(&format!("{shown} {verb} written:\n{}", lines.join("\n")));
        }
    }
    if answers.is_dry {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    machine.make_folder(folder).map_err(Ending::Refused)?;
    machine.write(path, text).map_err(Ending::Refused)?;
    machine.give_to_service(path).map_err(Ending::Refused)
}

fn token(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    file: &Path,
) -> Result<(), Ending> {
    let tokens = machine.read(file).unwrap_or_default();
    let path = file.to_string_lossy();
    if tokens.lines().any(|line| line.split(':').next() == Some(TOKEN)) {
        let another = creating("NAME", &path);
        let shown = shown(&another);
        operator.say(&format!("The token {TOKEN} is there, and stored nowhere. Another: {shown}"));
        return Ok(());
    }
    if !answers.is_dry {
        operator.say("The first token for the page and the API. It is shown once: keep it.");
    }
    run(answers, operator, &creating(TOKEN, &path))?;
    if answers.is_dry {
        return Ok(());
    }
    machine.give_to_service(file).map_err(Ending::Refused)
}

fn words(list: &[&str]) -> Words {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// The verb that makes a token.
fn creating(name: &str, file: &str) -> Words {
    words(&["serve", "token", "create", name, "--scope", SCOPES, "--token-file", file])
}

/// Has the service started, or says which command starts it; whether it is waited for.
pub(crate) fn service(
    answers: &Answers,
    (machine, operator): (&dyn Machine, &mut dyn Operator),
    (path, volume): (&Path, &Path),
) -> Result<bool, Ending> {
    let by_hand = words(&["serve", "--config", &path.to_string_lossy()]);
    let by_hand = shown(&by_hand);
    if operator.is_recording(volume) {
        operator.say("A recorder runs on this volume.");
        return Ok(true);
    }
    if let Some(why) = no_unit(machine, (path, volume)) {
        operator.say(&format!("{why}. This command starts the service:\n  {by_hand}"));
        return waits(
            answers,
            operator,
            "Is it being started now, in another terminal (yes or no)?",
        );
    }
    let unit = ["systemctl", "enable", "--now", "wirespool"];
    let line = unit.join(" ");
    if !waits(
        answers,
        operator,
        &format!("Start the service, now and at each boot: {line} (yes or no)?"),
    )? {
        operator.say(&format!("This command starts it:\n  {line}"));
        return Ok(false);
    }
    if answers.is_dry {
        operator.say(&format!("would run: {line}"));
        return Ok(true);
    }
    operator.say(&format!("running: {line}"));
    operator.run_program(&unit).map_err(Ending::Refused)?;
    Ok(true)
}

/// Why the unit cannot start it.
fn no_unit(machine: &dyn Machine, (path, volume): (&Path, &Path)) -> Option<String> {
    let is_below = |place: &Path| volume.starts_with(place);
    match machine.manager() {
        Manager::None => Some("There is no systemd here".to_owned()),
        Manager::SystemdWithoutUnit => Some(
            "The unit wirespool.service is not installed; the Debian package has it".to_owned(),
        ),
        Manager::Systemd if path != Path::new(UNIT_CONFIG) => Some(format!(
            "The unit wirespool.service reads {UNIT_CONFIG}, and this is another file"
        )),
        Manager::Systemd if !is_below(Path::new("/dev")) && !is_below(Path::new(UNIT_STATE)) => {
            Some(format!(
                "The unit wirespool.service may write to {UNIT_STATE} and disks alone; elsewhere \
                 it needs ReadWritePaths= in a drop-in (docs/service.md)"
            ))
        }
        Manager::Systemd => None,
    }
}

fn waits(answers: &Answers, operator: &mut dyn Operator, text: &str) -> Result<bool, Ending> {
    if let Some(start) = answers.start {
        return Ok(start);
    }
    let question = Question {
        what: "whether the service starts",
        flag: "--start yes|no",
        text,
        proposal: Some("yes".to_owned()),
    };
    answer((answers, operator), &question, yes_or_no)
}

/// Waits for the recorder, then for a session; whether both came.
pub(crate) fn first_session(
    answers: &Answers,
    operator: &mut dyn Operator,
    volume: &Path,
) -> Result<bool, Ending> {
    let shown = safe::path(volume);
    let is_running = wait(answers, operator, "the recorder", &|operator| {
        operator.is_recording(volume).then(String::new)
    })?;
    let patience = page::text::took(answers.patience);
    if is_running.is_none() {
        operator.say(&format!(
            "No recorder answered on {shown} within {patience}. Its messages say why: journalctl \
             -u wirespool, or the terminal in which it was started."
        ));
        return Ok(false);
    }
    operator.say(&format!("The recorder runs on {shown}."));
    let found =
        wait(answers, operator, "the first session", &|operator| operator.first_session(volume))?;
    let Some(session) = found else {
        operator.say(&format!(
            "No session came within {patience}: the recorder runs, and nothing passed that makes \
             one. Look at the cable and at the mirror port of the switch."
        ));
        return Ok(false);
    };
    operator.say(&format!("The first session is found:\n  {}", safe::printable(&session)));
    Ok(true)
}

type Look<'a> = &'a dyn Fn(&dyn Operator) -> Option<String>;

fn wait(
    answers: &Answers,
    operator: &mut dyn Operator,
    what: &str,
    look: Look<'_>,
) -> Result<Option<String>, Ending> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(found) = look(operator) {
            return Ok(Some(found));
        }
        if waited >= answers.patience {
            return Ok(None);
        }
        let (passed, all) = (waited.as_secs(), answers.patience.as_secs());
        operator.progress(&format!("waiting for {what}: {passed} s of at most {all} s"));
        operator.rest(LOOK);
        if operator.is_stopped() {
            return Err(Ending::Interrupted);
        }
        waited += LOOK;
    }
}

/// The three commands that come next.
pub(crate) fn next(volume: &Path, has_recorder: bool) -> String {
    let volume = volume.to_string_lossy().into_owned();
    let line = |list: &[&str]| format!("  {}", shown(&words(list)));
    let first = if has_recorder {
        (line(&["status", &volume]), "how the recording stands")
    } else {
        (line(&["record", &volume, "--read", "FILE.pcap"]), "import a capture")
    };
    let lines = [
        first,
        (line(&["find", &volume, "port 53"]), "sessions"),
        (line(&["extract", &volume, "port 53", "-w", "dns.pcapng"]), "their packets"),
    ];
    let width = lines.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let lines = lines.map(|(command, what)| format!("{command:<width$}   {what}"));
    format!("\nNext:\n{}", lines.join("\n"))
}

/// The configuration file of these answers.
pub(crate) fn config_path(answers: &Answers, machine: &dyn Machine) -> PathBuf {
    let path = answers.config.clone().unwrap_or_else(|| machine.places().config);
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_path_that_no_configuration_can_name_is_refused_before_anything_is_made() {
        let path = PathBuf::from(OsStr::from_bytes(b"/data/\xff"));
        let named = |answers: Answers| Answers { name: "main".to_owned(), ..answers };
        for answers in [
            Answers { members: vec![path.clone()], ..Answers::default() },
            Answers { folders: vec![path.clone()], ..Answers::default() },
            Answers { config: Some(path.clone()), ..Answers::default() },
        ] {
            assert!(matches!(check(&named(answers)), Err(Ending::Wrong(_))));
        }
        assert!(check(&named(Answers::default())).is_ok());
    }
}
