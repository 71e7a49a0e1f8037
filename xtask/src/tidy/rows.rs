//! The rule in one sentence: a crate may depend only on crates in lower rows, never beside it,
//! never above it. Crates lie in folders by part of the product; rows run across them.

use anyhow::{Context, Result};
use serde_json::Value;

/// The layers, from the ground up. Each crate of the workspace stands in exactly one row.
pub(crate) const ROWS: [&[&str]; 16] = [
    &["units", "stage"],
    &["wire", "statistics"],
    &["app", "anonymise", "encryption", "format", "parity"],
    &["filters", "device", "host", "sandbox"],
    &["capture", "blockdev", "network", "observe"],
    &["guard", "volume", "session", "index", "query", "findings"],
    &[
        "writer",
        "indexer",
        "calls",
        "completeness",
        "events",
        "evidence",
        "found",
        "logs",
        "selection",
        "vitals",
    ],
    &["packet-output", "manifest", "recording"],
    &[
        "record",
        "extract",
        "upkeep",
        "replay",
        "prove",
        "qualify",
        "diagnose",
        "connections",
        "trace",
        "runs",
        "talkers",
        "page",
        "https",
        "interface",
    ],
    &[
        "volume-view",
        "session-view",
        "qualify-view",
        "machine-view",
        "sql",
        "audit",
        "hold",
        "raw",
        "forget",
        "pseudonyms",
        "people",
        "oidc",
        "jobs",
        "turns",
        "tags",
        "approvals",
        "questions",
        "exposition",
    ],
    &[
        "tui",
        "server",
        "worker",
        "remote",
        "supervise",
        "setup",
        "archive",
        "attest",
        "fleet",
        "engine",
        "authority",
    ],
    &["verbs", "sensors"],
    &["flags"],
    &["tool-verbs"],
    &["wirespool"],
    &["sim", "schedules", "scale", "lab", "bench", "testdata", "xtask", "fuzz"],
];

/// Data for the tests of any row: a crate may depend on it for its tests and not otherwise, and it
/// depends on no crate of ours, so that what it says of its data is its own.
const FOR_TESTS: &str = "testdata";

/// The parts of the product: each is a folder of crates.
pub(crate) const PARTS: [&str; 9] =
    ["base", "packets", "storage", "sessions", "recorder", "machine", "tools", "faces", "proof"];

/// The system boundary: the only rows that may call the operating system. The upper one looks at
/// what the lower one does not keep for itself: disks, networks and other processes.
pub(crate) const BOUNDARY: [usize; 2] = [3, 4];
/// The lowest row that may print to the terminal.
pub(crate) const FACES: usize = 11;
/// Flags, and verbs with theirs, below the binary.
const FLAGS: usize = 12;
const VERBS: usize = 13;
/// The row of the binary.
pub(crate) const BINARY: usize = 14;
/// Tools for developers; they may start programs and read files.
pub(crate) const TOOLS: usize = 15;
/// Who calls the operating system by libraries.
const CALLERS: [usize; 3] = [BOUNDARY[0], BOUNDARY[1], TOOLS];

/// Libraries that belong to certain rows: the operating system to the boundary and to tools,
/// arguments to the binary and its verbs, what waits for many clients to the row of the server. A
/// report derives its serialization and its schema where it is declared, in a job, in what jobs
/// stand on, or in a crate of the boundary; so do the times and ids that reports are made of. A
/// job, and what jobs have for evidence, reads JSON that it or others wrote; only `page`, which
/// knows no job, writes it (`boundary` checks that). Tests may use them anywhere.
const OWNED: [(&str, &[usize]); 16] = [
    ("blazesym", &BOUNDARY),
    ("libc", &CALLERS),
    ("rustix", &CALLERS),
    ("io-uring", &BOUNDARY),
    ("libloading", &BOUNDARY),
    ("signal-hook", &BOUNDARY),
    ("serde", &[0, 1, 2, 4, 5, 6, 7, 8, 9, 10]),
    ("schemars", &[0, 1, 2, 4, 5, 6, 7, 8, 9, 10]),
    ("serde_json", &[6, 7, 8, 9, 10, TOOLS]),
    ("datafusion", &[9]),
    ("tokio", &[8, 9, 10]),
    ("hyper", &[8, 9, 10]),
    ("object_store", &[10]),
    ("rustls", &[8, 9, 10]),
    ("clap", &[FLAGS, VERBS, BINARY, TOOLS]),
    ("anyhow", &[FACES, FLAGS, VERBS, BINARY, TOOLS]),
];

/// A crate of the workspace with what it depends on.
#[derive(Debug)]
pub(crate) struct Package {
    name: String,
    /// Its `Cargo.toml`, from the root of the workspace.
    manifest: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug)]
struct Dependency {
    name: String,
    /// A crate of this repository, by its path.
    is_ours: bool,
    is_for_tests: bool,
}

impl Package {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The part of the product that it lies in; `None` beside `crates/`.
    pub(crate) fn part(&self) -> Option<&'static str> {
        let is_in = |part: &&str| self.manifest.starts_with(&format!("/crates/{part}/"));
        PARTS.into_iter().find(is_in)
    }

    /// Names of the libraries that this crate takes from a registry.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &str> {
        let libraries = self.dependencies.iter().filter(|dependency| !dependency.is_ours);
        libraries.map(|dependency| dependency.name.as_str())
    }
}

/// The row of a crate; `None` for a crate that is missing from the table.
pub(crate) fn row(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&name))
}

/// Reads the answer of `cargo metadata --no-deps`.
pub(crate) fn packages(metadata: &str) -> Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata).context("cargo metadata is not JSON")?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("no packages")?;
    let root = metadata.get("workspace_root").and_then(Value::as_str).context("no root")?;
    packages
        .iter()
        .map(|package| read_package(root, package).context("unknown form of package"))
        .collect()
}

fn read_package(root: &str, package: &Value) -> Option<Package> {
    let name = package.get("name")?.as_str()?.to_owned();
    let manifest = package.get("manifest_path")?.as_str()?.strip_prefix(root)?.to_owned();
    let dependencies = package.get("dependencies")?.as_array()?;
    let dependencies = dependencies.iter().map(|dependency| {
        Some(Dependency {
            name: dependency.get("name")?.as_str()?.to_owned(),
            is_ours: dependency.get("path").is_some_and(Value::is_string),
            is_for_tests: dependency.get("kind")?.as_str() == Some("dev"),
        })
    });
    Some(Package { name, manifest, dependencies: dependencies.collect::<Option<_>>()? })
}

/// Every edge that leads up or sideways, every library in the wrong row, every crate without a row.
pub(crate) fn check(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<String> {
    let name = &package.name;
    let Some(own) = row(name) else {
        return vec![format!("{name} is missing from the table of rows in xtask/src/tidy/rows.rs")];
    };
    let is_below_crates = package.manifest.starts_with("/crates/");
    let is_own = |part| package.manifest == format!("/crates/{part}/{name}/Cargo.toml");
    let is_elsewhere = is_below_crates && !PARTS.iter().any(is_own);
    let place = is_elsewhere.then(|| format!("{name} is in no folder of a part: {PARTS:?}"));
    let findings = package.dependencies.iter().filter_map(|dependency| {
        let other = &dependency.name;
        if dependency.is_ours {
            if name == FOR_TESTS {
                return Some(format!(
                    "{name} may not depend on {other}: it depends on none of ours"
                ));
            }
            if other == FOR_TESTS {
                let is_wrong = !dependency.is_for_tests;
                return is_wrong
                    .then(|| format!("{name} may depend on {other} only for its tests"));
            }
            // Without a row the other crate is a finding of its own.
            let upper = row(other).filter(|upper| *upper >= own)?;
            return Some(format!("{name} (row {own}) may not depend on {other} (row {upper})"));
        }
        let (_, allowed) = OWNED.iter().find(|(library, _)| library == other)?;
        let is_wrong = !dependency.is_for_tests && !allowed.contains(&own);
        is_wrong.then(|| format!("{name} (row {own}) may not depend on {other} (only {allowed:?})"))
    });
    place.into_iter().chain(findings).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(package: &str, dependency: &str) -> Vec<String> {
        findings_in("/product/Cargo.toml", package, dependency)
    }

    fn findings_in(manifest: &str, package: &str, dependency: &str) -> Vec<String> {
        let text = format!(
            "{{\"workspace_root\":\"/product\",\"packages\":[{{\"name\":\"{package}\",\
             \"manifest_path\":\"{manifest}\",\"dependencies\":[{dependency}]}}]}}"
        );
        check(&packages(&text).unwrap())
    }

    fn ours(name: &str, kind: &str) -> String {
        format!("{{\"name\":\"{name}\",\"kind\":{kind},\"path\":\"crates/{name}\"}}")
    }

    #[test]
    fn an_edge_may_only_lead_down() {
        let up = findings("wire", &ours("volume", "null"));
        assert_eq!(up, ["wire (row 1) may not depend on volume (row 5)"]);
        let beside = findings("session", &ours("index", "null"));
        assert_eq!(beside, ["session (row 5) may not depend on index (row 5)"]);
        assert!(findings("volume", &ours("wire", "null")).is_empty());
    }

    #[test]
    fn test_and_build_dependencies_are_edges_too() {
        assert_eq!(findings("wire", &ours("volume", "\"dev\"")).len(), 1);
        assert_eq!(findings("wire", &ours("volume", "\"build\"")).len(), 1);
    }

    #[test]
    fn data_for_tests_is_for_tests_alone_and_of_its_own() {
        assert!(findings("wire", &ours("testdata", "\"dev\"")).is_empty());
        assert_eq!(findings("wire", &ours("testdata", "null")).len(), 1);
        assert_eq!(findings("bench", &ours("testdata", "null")).len(), 1);
        assert_eq!(findings("testdata", &ours("units", "null")).len(), 1);
        assert_eq!(findings("testdata", &ours("units", "\"dev\"")).len(), 1);
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        let unknown = findings("common", "");
        assert_eq!(unknown, ["common is missing from the table of rows in xtask/src/tidy/rows.rs"]);
    }

    #[test]
    fn a_crate_lies_in_the_folder_of_a_part() {
        assert!(findings_in("/product/crates/packets/wire/Cargo.toml", "wire", "").is_empty());
        for place in ["crates/wire", "crates/common/wire", "crates/packets/app"] {
            assert_eq!(findings_in(&format!("/product/{place}/Cargo.toml"), "wire", "").len(), 1);
        }
    }

    #[test]
    fn a_library_of_another_row_is_refused_outside_tests() {
        let library = |kind: &str| format!("{{\"name\":\"libc\",\"kind\":{kind},\"path\":null}}");
        assert_eq!(findings("volume", &library("null")).len(), 1);
        assert!(findings("volume", &library("\"dev\"")).is_empty());
        assert!(findings("device", &library("null")).is_empty());
        assert!(findings("network", &library("null")).is_empty());
    }
}
