//! `cargo xtask web`: the page in `web/`, from its source to the files that the program holds.
//!
//! Everything is built in a copy under cargo's target folder, so that the checkout gets nothing but
//! `web/dist`. Building needs Node and npm's registry; the Rust workspace needs neither, because
//! `web/dist` is part of the repository. In CI the copy is checked, built, compared with
//! `web/dist`, and used in a browser against a service of this checkout.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::{process, sources};

/// Vite needs it.
const NODE: (u32, u32) = (20, 19);
const DIST: &str = "web/dist";
/// What decodes packets for the page, where it is installed.
const TSHARK: &str = "/usr/bin/tshark";

/// Why the page cannot be built here.
pub(crate) fn missing() -> Option<String> {
    let node = Command::new("node").arg("--version").output().ok();
    let version = node.and_then(|output| version(&String::from_utf8_lossy(&output.stdout)));
    match version {
        None => Some("Node is not installed".to_owned()),
        Some(known) if known < NODE => {
            Some(format!("Node {}.{} is too old, 20.19 is needed", known.0, known.1))
        }
        Some(_) if !process::exists("npm") => Some("npm is not installed".to_owned()),
        Some(_) => match install() {
            Ok(()) => None,
            Err(error) => Some(format!("{error:#}")),
        },
    }
}

/// Why no browser can be run here.
pub(crate) fn no_browser() -> Option<String> {
    let is_there = process::exists("chromium");
    (!is_there).then(|| "chromium is not installed".to_owned())
}

/// Why the tests run in Chromium alone (playwright.config.ts).
pub(crate) fn no_firefox() -> Option<String> {
    let is_there = process::exists("firefox-esr");
    (!is_there).then(|| "firefox-esr is not installed".to_owned())
}

/// `v20.19.1` as numbers.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Builds the page and puts it into `web/dist`.
pub(crate) fn build() -> Result<bool> {
    if let Some(reason) = missing() {
        bail!("{reason}");
    }
    for (name, bytes) in built()? {
        fs::write(process::root().join(DIST).join(name), bytes)?;
    }
    println!("{DIST} is new");
    Ok(true)
}

/// Lint, types, unit tests, and whether `web/dist` is what the source builds.
pub(crate) fn check() -> Result<bool> {
    npm(&["run", "check"])?;
    npm(&["test"])?;
    let built = built()?;
    let kept = files(&process::root().join(DIST))?;
    ensure!(built == kept, "{DIST} is not what web/ builds: cargo xtask web");
    Ok(true)
}

/// The page in the browsers that are there.
pub(crate) fn browse() -> Result<bool> {
    browse_with("chromium")?;
    if no_firefox().is_none() {
        browse_with("firefox")?;
    }
    Ok(true)
}

/// The page in one browser, against services that this starts: some of what they know counts once.
fn browse_with(browser: &str) -> Result<()> {
    let wirespool = process::target_folder().join("debug/wirespool");
    let folder = process::target_folder().join("web-demo");
    drop(fs::remove_dir_all(&folder));
    let kept = folder.to_str().context("the target folder's name is no text")?;
    process::output(Command::new(&wirespool).args(["demo", "--keep", kept]))?;
    let (volume, tokens) = (format!("{kept}/volume"), format!("{kept}/tokens"));
    let scopes = ["--scope", "sessions,payload,extract,request,approve,hold,admin"];
    let create = ["serve", "token", "create", "browser", "--token-file", &tokens];
    let token = process::text(Command::new(&wirespool).args(create).args(scopes))?;
    let serve = ["serve", &volume, "--listen", "127.0.0.1:0", "--token-file", &tokens];
    let [requests, log] = ["requests", "requests-audit"].map(|name| format!("{kept}/{name}"));
    let has_tshark = Path::new(TSHARK).exists();
    let decodes: &[&str] = if has_tshark { &["--tshark", TSHARK] } else { &[] };
    let asked = ["--requests-file", &requests, "--audit", &log];
    let asked = [&serve[..], &asked, decodes].concat();
    let (_service, url) = Service::start(&wirespool, &asked, "listening at ")?;
    // One that has nobody yet, and says the link for the first one.
    let [people, audit] = ["people", "audit"].map(|name| format!("{kept}/{name}"));
    let beside = ["--people-file", &people, "--audit", &audit];
    let staffed = [&serve[..], &beside].concat();
    let (_staffed, said) = Service::start(&wirespool, &staffed, "yet: who opens ")?;
    let link = said.split(' ').next().unwrap_or_default();
    // One with people, keys, and a provider that the tests start and end.
    let [page, provider] = [free_port()?, free_port()?];
    let (_known, _) = Service::start(&wirespool, &known(kept, (page, provider))?, "listening at ")?;
    let mut tests = command("npm", &["run", "e2e", "--", "--project", browser]);
    tests.env("WIRESPOOL_URL", url.trim()).env("WIRESPOOL_TOKEN", token.trim());
    tests.env("WIRESPOOL_FIRST", link);
    tests.envs(has_tshark.then_some(("WIRESPOOL_TSHARK", TSHARK)));
    tests.env("WIRESPOOL_STAFFED", format!("http://localhost:{page}"));
    tests.env("WIRESPOOL_PROVIDER_PORT", provider.to_string());
    process::run(&mut tests)
}

/// What the people of the tests know.
const PASSWORD: &str = "correct horse battery";
/// Settings of the provider that the tests start, behind its address.
const PROVIDER: &str = "
client_id = 'wirespool'
client_secret = 'a secret of tests'
label = 'Log in at the office'

[[role]]
claim = 'groups'
value = 'admins'
role = 'administrator'

[[role]]
claim = 'groups'
value = 'all'
role = 'desk'
";

/// Words of a service with two people and a provider, once their files are there.
#[expect(clippy::disallowed_methods, reason = "a tool makes files")]
fn known(kept: &str, (page, provider): (u16, u16)) -> Result<Vec<String>> {
    let wirespool = process::target_folder().join("debug/wirespool");
    let at = |name: &str| format!("{kept}/{name}");
    for (name, role) in [("boss", "administrator"), ("keys", "analyst")] {
        let words = ["serve", "person", "add", name, "--role", role, "--stdin", "--people-file"];
        let mut add = Command::new(&wirespool);
        add.args(words).arg(at("known")).stdin(Stdio::piped());
        let mut add = add.spawn()?;
        let mut stdin = add.stdin.take().context("it is piped")?;
        writeln!(stdin, "{PASSWORD}")?;
        drop(stdin);
        ensure!(add.wait()?.success(), "the person {name} could not be added");
    }
    let settings = format!("issuer = 'http://127.0.0.1:{provider}'{PROVIDER}");
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(at("provider.toml"))?;
    file.write_all(settings.as_bytes())?;
    let listen = format!("127.0.0.1:{page}");
    let words = ["serve", &at("volume"), "--listen", &listen, "--token-file", &at("tokens")];
    let people = ["--people-file", &at("known"), "--audit", &at("known-audit")];
    let more = ["--role", "desk=sessions port 53", "--provider", &at("provider.toml")];
    Ok(words.iter().chain(&people).chain(&more).map(|word| (*word).to_owned()).collect())
}

/// A port that nobody listens at. Keys belong to an address that is known before it is opened.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A service that ends with this value.
struct Service(Child);

impl Service {
    /// Starts one, and waits for what it says behind some words.
    fn start(
        wirespool: &Path,
        words: &[impl AsRef<OsStr>],
        before: &str,
    ) -> Result<(Self, String)> {
        let mut command = Command::new(wirespool);
        let mut service = Self(command.args(words).stderr(Stdio::piped()).spawn()?);
        let mut lines = BufReader::new(service.0.stderr.take().context("it is piped")?).lines();
        let said = lines.find_map(|line| Some(line.ok()?.split_once(before)?.1.to_owned()));
        let said = said.context("the service did not begin")?;
        // Who is not heard would wait.
        let hear = move || lines.for_each(drop);
        std::thread::Builder::new().name("log".to_owned()).spawn(hear)?;
        Ok((service, said))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Where the page is built.
fn copy() -> PathBuf {
    process::target_folder().join("web")
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = process::command(program, arguments);
    command.current_dir(copy());
    command
}

fn npm(arguments: &[&str]) -> Result<()> {
    process::run(&mut command("npm", arguments))
}

/// Copies the source, and installs what it needs as the lock says.
fn install() -> Result<()> {
    sources::copy("web", &copy())?;
    process::output(&mut command("npm", &["ci", "--silent"])).map(drop)
}

/// Builds the page; its files.
fn built() -> Result<Files> {
    npm(&["run", "build"])?;
    files(&copy().join("dist"))
}

/// By their names.
type Files = BTreeMap<String, Vec<u8>>;

fn files(folder: &Path) -> Result<Files> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    entries
        .map(|entry| {
            let entry = entry?;
            Ok((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_compared_as_numbers() {
        assert_eq!(version("v20.19.1\n"), Some((20, 19)));
        assert!(version("v18.20.4").unwrap() < NODE && version("v22.3.0").unwrap() > NODE);
        assert_eq!(version("20"), None);
    }
}
