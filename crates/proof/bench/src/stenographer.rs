//! Stenographer with the packets of a capture: they come to it over a link, as it knows no other
//! way, and it is asked as stenoread asks, by curl over TLS with a client's certificate.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use host::{Program, TemporaryDirectory};
use serde_json::{Value, json};
use units::NANOS_PER_SECOND;

use crate::pair::Pair;
use crate::program::{self, Run, wait};

/// Inside of a namespace no other process has it.
const PORT: u16 = 1234;
/// Files are looked into when they are finished: this one says how long they may be open.
const FILE_SECONDS: i64 = 20;
const START_NS: i64 = 5 * NANOS_PER_SECOND;
/// What is offered, far below where it loses packets.
const GBIT: &str = "1";
const PATIENCE: Duration = Duration::from_secs(10);

/// A running one, in a namespace of its own; ended when dropped.
#[derive(Debug)]
pub(crate) struct Stenographer {
    pair: Pair,
    service: Option<Program>,
    certificates: PathBuf,
    _said: TemporaryDirectory,
}

impl Stenographer {
    /// One that has seen all packets of `capture`; its files lie in `folder`.
    pub(crate) fn fed(folder: &Path, capture: &Path, wirespool: &Path) -> Result<Self> {
        let config = configure(folder)?;
        let pair = Pair::new()?;
        let up = ["ip", "link", "set", "lo", "up"];
        pair.program(up[0]).args(&up[1..]).status().context("no loopback")?;
        let said = TemporaryDirectory::new("stenographer")?;
        let command = ["stenographer", "-syslog=false", "-config"].map(OsString::from);
        let arguments: Vec<OsString> = [&pair.entering()[..], &command, &[config.into()]].concat();
        let service = Program::start(Path::new("ip"), &arguments, said.path())?;
        let certificates = folder.join("certificates").canonicalize()?;
        let new = Self { pair, service: Some(service), certificates, _said: said };
        wait(START_NS);
        new.feed(capture, wirespool)?;
        wait(2 * FILE_SECONDS * NANOS_PER_SECOND);
        Ok(new)
    }

    fn feed(&self, capture: &Path, wirespool: &Path) -> Result<()> {
        let mut command = self.pair.program(wirespool);
        command.arg("replay").arg(capture);
        command.args(["--interface", "left", "--gbit", GBIT, "--json"]);
        let sent: Value = program::run(&mut command)?.json()?;
        let sent = sent.get("packets").and_then(Value::as_u64).context("nothing was sent")?;
        let received = self.pair.received()?;
        ensure!(received >= sent, "{received} of {sent} packets came over the link");
        Ok(())
    }

    /// The packets of a query.
    pub(crate) fn ask(&self, query: &str) -> Result<Run> {
        let file = |name: &str| self.certificates.join(name);
        let mut command = self.pair.program("curl");
        command.args(["--silent", "--show-error", "--fail", "--max-time", "600"]);
        command.arg("--cert").arg(file("client_cert.pem"));
        command.arg("--key").arg(file("client_key.pem"));
        command.arg("--cacert").arg(file("ca_cert.pem"));
        command.args(["--data", query, &format!("https://127.0.0.1:{PORT}/query")]);
        program::run(&mut command)
    }

    /// What it and its stenotype still run as.
    fn processes(&self) -> Vec<String> {
        let output = Command::new("ip").args(["netns", "pids", self.pair.name()]).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }
}

impl Drop for Stenographer {
    fn drop(&mut self) {
        if let Some(service) = self.service.take() {
            service.interrupt();
            drop(service.wait(PATIENCE));
        }
        // stenotype at times never ends.
        for process in self.processes() {
            drop(Command::new("kill").args(["-9", &process]).stderr(Stdio::null()).status());
        }
    }
}

/// Makes what it needs in `folder`; gives its configuration.
fn configure(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    // It changes its directory.
    let folder = folder.canonicalize()?;
    let path = |name: &str| folder.join(name);
    for name in ["packets", "index", "certificates"] {
        fs::create_dir_all(path(name))?;
    }
    let stenotype = program::run(Command::new("which").arg("stenotype"))?.output;
    let config = json!({
        "Threads": [{
            "PacketsDirectory": path("packets"),
            "IndexDirectory": path("index"),
            "MaxDirectoryFiles": 30_000,
            "DiskFreePercentage": 1,
        }],
        "StenotypePath": String::from_utf8_lossy(&stenotype).trim(),
        "Interface": "right",
        "Port": PORT,
        "Host": "127.0.0.1",
        // As `nobody` it could not enter the folder that its own service makes for it.
        "Flags": [
            "--seccomp=none", "--uid=root", "--gid=root",
            format!("--fileage_sec={FILE_SECONDS}"), "--filesize_mb=1024",
        ],
        "CertPath": path("certificates"),
    });
    fs::write(path("config"), config.to_string())?;
    let mut keys = Command::new("stenokeys");
    program::run(keys.args(["root", "root"]).env("STENOGRAPHER_CONFIG", path("config")))
        .context("stenokeys (Debian package stenographer) makes the keys, with jq and openssl")?;
    Ok(path("config"))
}
