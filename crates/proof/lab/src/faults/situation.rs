//! A situation: a script that plants one cause of slowness on this machine, and takes it away.
//!
//! ```text
//! # what: a listener with a backlog of 1 never accepts
//! # finding: tcp.accept_queue        kinds that name the cause; `none` of a healthy one
//! # names: 9000                      words that the right finding has
//! # also: tcp.unread                 kinds that follow from the cause
//! # look: calls --pid $PID           arguments of `wirespool diagnose`
//! # time: 10                         seconds to look
//! # short                            part of the short form
//! # experts: ss -ltn, nstat          what else shows it
//! # see: Recv-Q above Send-Q         and what to see there
//! ```

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use host::SystemClock;
use units::{Clock, NANOS_PER_SECOND, Sleep};

use crate::tools;

/// A situation that takes longer than that to be there has failed, and so has one that takes
/// longer to be gone.
const READY: Duration = Duration::from_mins(1);
const GONE_NS: i64 = 60 * NANOS_PER_SECOND;
const SECONDS: u64 = 10;
/// Lines of a script that wait to be read; what it says beyond is not needed.
const LINES: usize = 1000;

/// What the head of a script says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Situation {
    pub(crate) name: String,
    pub(crate) what: String,
    /// Kinds of findings that name the cause; none of a healthy machine.
    pub(crate) findings: Vec<String>,
    pub(crate) names: Vec<String>,
    /// Kinds that follow from the cause.
    pub(crate) also: Vec<String>,
    pub(crate) look: Vec<String>,
    pub(crate) seconds: u64,
    pub(crate) is_short: bool,
    pub(crate) experts: String,
    pub(crate) see: String,
    pub(super) script: PathBuf,
}

/// All situations of a folder, by name.
pub(crate) fn all(folder: &Path) -> Result<Vec<Situation>> {
    let scripts = tools::files(folder)?;
    let named = scripts.iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".sh")?;
        (name != "words").then_some((path, name))
    });
    named
        .map(|(path, name)| {
            let text = fs::read_to_string(path)?;
            let situation = parse(name, &text);
            let situation = situation.with_context(|| path.display().to_string())?;
            Ok(Situation { script: path.canonicalize()?, ..situation })
        })
        .collect()
}

/// Lines of the head without their `# `; those that are indented go on with the one before.
fn head(script: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let head = script.lines().take_while(|line| line.starts_with('#'));
    for line in head.filter_map(|line| line.strip_prefix("# ")) {
        match lines.last_mut().filter(|_| line.starts_with(' ')) {
            Some(before) => {
                before.push(' ');
                before.push_str(line.trim());
            }
            None => lines.push(line.to_owned()),
        }
    }
    lines
}

fn parse(name: &str, script: &str) -> Result<Situation> {
    let mut situation =
        Situation { name: name.to_owned(), seconds: SECONDS, ..Situation::default() };
    for line in head(script) {
        let (key, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.trim();
        let words = || value.split_whitespace().map(str::to_owned);
        match key {
            "what" => value.clone_into(&mut situation.what),
            "finding" => situation.findings.extend(words().filter(|word| word != "none")),
            "names" => situation.names.push(value.to_owned()),
            "also" => situation.also.extend(words()),
            "look" => situation.look.extend(words()),
            "time" => situation.seconds = value.parse().context("time is no number")?,
            "short" => situation.is_short = true,
            "experts" => value.clone_into(&mut situation.experts),
            "see" => value.clone_into(&mut situation.see),
            _ => {}
        }
    }
    ensure!(!situation.what.is_empty(), "it does not say what it plants: \"# what: ...\"");
    ensure!(script.contains("# finding: "), "it does not say which finding names it");
    Ok(situation)
}

/// How a script began.
pub(crate) enum Begun {
    /// The cause is there.
    Ready(Planted),
    /// This machine cannot host it.
    Skipped(String),
    /// It could not be planted.
    Failed(String),
}

/// A situation that is there until it is taken away.
pub(crate) struct Planted {
    script: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The process that it is about, where it says so.
    pub(crate) process: Option<String>,
}

impl Situation {
    /// Starts the script and waits until the cause is there. The number tells runs apart.
    pub(crate) fn plant(&self, number: usize) -> Result<Begun> {
        // What it says of errors stands between the lines that are meant for us.
        let mut script = Command::new("sh")
            .args(["-c", "exec sh \"$0\" 2>&1"])
            .arg(&self.script)
            .env("FAULT_ID", format!("{}-{}-{number}", self.name, std::process::id()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("cannot start sh")?;
        let (stdin, stdout) = (script.stdin.take(), script.stdout.take());
        let stdout = stdout.context("no pipe")?;
        let (sender, lines) = sync_channel(LINES);
        thread::Builder::new().name("situation".to_owned()).spawn(move || {
            let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
            // Nobody reads what it says too much.
            lines.all(|line| !matches!(sender.try_send(line), Err(TrySendError::Disconnected(_))));
        })?;
        let mut planted = Planted { script, stdin, lines, process: None };
        let mut last = "it said nothing".to_owned();
        while let Ok(line) = planted.lines.recv_timeout(READY) {
            if let Some(reason) = line.strip_prefix("skip: ").map(str::to_owned) {
                planted.remove()?;
                return Ok(Begun::Skipped(reason));
            }
            if let Some(rest) = line.strip_prefix("ready") {
                planted.process = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
                return Ok(Begun::Ready(planted));
            }
            last = line;
        }
        // What it says of its own end says nothing more.
        drop(planted.remove());
        Ok(Begun::Failed(last))
    }
}

impl Planted {
    /// Has the script take everything away; an error where it does not end, or says that something
    /// stayed behind.
    pub(crate) fn remove(mut self) -> Result<()> {
        const NAP_NS: i64 = NANOS_PER_SECOND / 20;
        drop(self.stdin.take());
        let begun_ns = SystemClock.boottime_ns();
        loop {
            if let Some(status) = self.script.try_wait()? {
                let last = self.lines.try_iter().last().unwrap_or_default();
                ensure!(status.success() || last.is_empty(), "{status}: {last}");
                return Ok(());
            }
            let now_ns = SystemClock.boottime_ns();
            if now_ns - begun_ns >= GONE_NS {
                self.script.kill()?;
                self.script.wait()?;
                bail!("it was not gone after a minute");
            }
            SystemClock.sleep_until(now_ns + NAP_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# what: a listener never accepts\n# finding: tcp.accept_queue\n\
        # names: 9000\n# names: python3\n# also: tcp.unread host.descriptors\n\
        # look: calls --pid\n#   $PID\n# time: 5\n# short\n. words.sh\n# names: not of the head\n";

    #[test]
    fn the_head_of_a_script_says_what_is_planted_and_what_names_it() {
        let situation = parse("deaf", HEAD).unwrap();
        assert_eq!((situation.findings, situation.seconds), (vec!["tcp.accept_queue".into()], 5));
        assert_eq!(situation.names, ["9000", "python3"]);
        assert_eq!((situation.also.len(), situation.look.len()), (2, 3));
        assert!(situation.is_short);
        let healthy = parse("quiet", "# what: nothing\n# finding: none\n").unwrap();
        assert!(healthy.findings.is_empty() && !healthy.is_short && healthy.seconds == SECONDS);
        assert!(parse("bad", "# what: nothing\n").is_err());
        assert!(parse("bad", "# finding: none\n").is_err());
    }

    #[test]
    fn a_script_is_planted_and_gone_when_its_input_ends() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, body: &str| {
            let path = folder.path().join(name);
            fs::write(path, format!("# what: a test\n# finding: none\n{body}")).unwrap();
        };
        write("words.sh", "exit 1\n");
        write("holds.sh", "echo ready 77\ncat >/dev/null\ntouch \"$(dirname \"$0\")/gone\"\n");
        write("lacks.sh", "echo 'skip: no such kernel'\n");
        write("fails.sh", "echo 'cannot do it' >&2\nexit 1\n");
        let all = all(folder.path()).unwrap();
        let of = |name: &str| all.iter().find(|it| it.name == name).unwrap().plant(1).unwrap();
        assert_eq!(all.len(), 3);
        let Begun::Ready(planted) = of("holds") else { panic!("it was ready") };
        assert_eq!(planted.process.as_deref(), Some("77"));
        planted.remove().unwrap();
        assert!(folder.path().join("gone").exists());
        assert!(matches!(of("lacks"), Begun::Skipped(reason) if reason == "no such kernel"));
        assert!(matches!(of("fails"), Begun::Failed(reason) if reason == "cannot do it"));
    }
}
