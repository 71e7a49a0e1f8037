//! `cargo xtask sbom`: every library in the packages, as `CycloneDX` 1.5.
//!
//! It is made of what cargo itself says: the libraries that the binary of the packages is built of,
//! with the features that packages have, for one target, and the checksums of `Cargo.lock`. Crates
//! of this repository are the product and no components. Libraries that only run while it is built
//! (build scripts, macros) are listed with the scope `excluded`. Nothing in it changes from one run
//! to the next: no time, no random number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process::{cargo, root, text};

/// Features that packages have.
pub(crate) const FEATURES: &str = "wirespool/sql,wirespool/s3";
/// The package whose binary is shipped.
const PRODUCT: &str = "wirespool";

/// Prints it for this machine.
pub(crate) fn run() -> Result<bool> {
    let host = text(&mut crate::process::command("rustc", &["-vV"]))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    println!("{}", sbom(host.context("rustc does not name its host")?)?);
    Ok(true)
}

/// The list for a target, as text.
pub(crate) fn sbom(target: &str) -> Result<String> {
    let metadata = text(&mut cargo(&[
        "metadata",
        "--format-version=1",
        "--locked",
        "--features",
        FEATURES,
        "--filter-platform",
        target,
    ]))?;
    let metadata = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("no Cargo.lock")?;
    let sbom = of(&metadata, &checksums(&lock))?;
    Ok(serde_json::to_string_pretty(&sbom).context("a list has a text")? + "\n")
}

/// SHA-256 of the crates of a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let start = format!("{key} = \"");
        let line = block.lines().find_map(|line| line.strip_prefix(&*start))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]").filter_map(|block| {
        let (name, version) = (value(block, "name")?, value(block, "version")?);
        Some(((name, version), value(block, "checksum")?))
    });
    packages.collect()
}

/// A package as `cargo metadata` has it, and how it is used.
struct Graph<'m> {
    packages: BTreeMap<&'m str, &'m Value>,
    /// Ids of what each needs, and whether that is only for the build.
    needs: BTreeMap<&'m str, Vec<(&'m str, bool)>>,
}

fn string<'v>(value: &'v Value, key: &str) -> Result<&'v str> {
    value.get(key).and_then(Value::as_str).with_context(|| format!("no {key} in cargo metadata"))
}

fn array<'v>(value: &'v Value, key: &str) -> Result<&'v Vec<Value>> {
    value.get(key).and_then(Value::as_array).with_context(|| format!("no {key} in cargo metadata"))
}

impl<'m> Graph<'m> {
    fn read(metadata: &'m Value) -> Result<Self> {
        let mut packages = BTreeMap::new();
        for package in array(metadata, "packages")? {
            packages.insert(string(package, "id")?, package);
        }
        let resolve = metadata.get("resolve").context("no resolve in cargo metadata")?;
        let mut needs = BTreeMap::new();
        for node in array(resolve, "nodes")? {
            let mut of_node = Vec::new();
            for dependency in array(node, "deps")? {
                let kinds = array(dependency, "dep_kinds")?;
                let is = |wanted: Option<&str>| {
                    kinds.iter().any(|kind| kind.get("kind").and_then(Value::as_str) == wanted)
                };
                if is(None) || is(Some("build")) {
                    of_node.push((string(dependency, "pkg")?, !is(None)));
                }
            }
            needs.insert(string(node, "id")?, of_node);
        }
        Ok(Self { packages, needs })
    }

    fn is_ours(&self, id: &str) -> bool {
        self.packages
            .get(id)
            .is_some_and(|package| package.get("source").is_none_or(Value::is_null))
    }

    /// A procedural macro runs in the compiler.
    fn is_macro(&self, id: &str) -> bool {
        let targets = self.packages.get(id).and_then(|package| package.get("targets"));
        let targets = targets.and_then(Value::as_array).into_iter().flatten();
        targets.filter_map(|target| target.get("kind")).any(|kinds| {
            let kinds = kinds.as_array().into_iter().flatten();
            kinds.filter_map(Value::as_str).any(|kind| kind == "proc-macro")
        })
    }

    /// All that a package needs, each with whether it is only for the build.
    fn reached(&self, from: &'m str) -> BTreeMap<&'m str, bool> {
        let mut reached: BTreeMap<&str, bool> = BTreeMap::new();
        let mut open = vec![(from, false)];
        while let Some((id, for_build)) = open.pop() {
            let for_build = for_build || self.is_macro(id);
            // What was met as needed at run time stays so.
            if reached.get(id).is_some_and(|known| !known || for_build) {
                continue;
            }
            reached.insert(id, for_build);
            let needs = self.needs.get(id).into_iter().flatten();
            open.extend(needs.map(|(other, only_build)| (*other, for_build || *only_build)));
        }
        reached
    }
}

fn purl(package: &Value) -> Result<String> {
    Ok(format!("pkg:cargo/{}@{}", string(package, "name")?, string(package, "version")?))
}

fn of(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Result<Value> {
    let graph = Graph::read(metadata)?;
    let product = graph.packages.iter().find(|(id, package)| {
        string(package, "name").is_ok_and(|name| name == PRODUCT) && graph.is_ours(id)
    });
    let (id, product) = product.context("no package wirespool")?;
    let reached = graph.reached(id);
    let (mut components, mut direct, mut edges) = (Vec::new(), BTreeSet::new(), Vec::new());
    for (id, for_build) in &reached {
        let package = graph.packages.get(id).context("a package without metadata")?;
        let needs = graph.needs.get(id).into_iter().flatten().map(|(other, _)| *other);
        let libraries = needs.filter(|other| reached.contains_key(other) && !graph.is_ours(other));
        let libraries =
            libraries.map(|other| purl(graph.packages.get(other).context("no package")?));
        let libraries = libraries.collect::<Result<BTreeSet<String>>>()?;
        if graph.is_ours(id) {
            direct.extend(libraries);
            continue;
        }
        components.push(component(package, *for_build, checksums)?);
        edges.push(json!({ "ref": purl(package)?, "dependsOn": libraries }));
    }
    let version = string(product, "version")?;
    edges.insert(0, json!({ "ref": PRODUCT, "dependsOn": direct }));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": PRODUCT,
                "name": PRODUCT,
                "version": version,
                "licenses": [{ "expression": string(product, "license")? }],
            },
        },
        "components": components,
        "dependencies": edges,
    }))
}

fn component(
    package: &Value,
    for_build: bool,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Value> {
    let (name, version) = (string(package, "name")?, string(package, "version")?);
    let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) else {
        bail!("Cargo.lock has no checksum of {name} {version}");
    };
    let licence = package.get("license").and_then(Value::as_str);
    // Older crates write the alternatives with a slash.
    let licence = licence.map(|text| text.replace('/', " OR "));
    let licences: Vec<Value> =
        licence.into_iter().map(|expression| json!({ "expression": expression })).collect();
    let repository = package.get("repository").and_then(Value::as_str);
    let references: Vec<Value> =
        repository.into_iter().map(|url| json!({ "type": "vcs", "url": url })).collect();
    Ok(json!({
        "type": "library",
        "bom-ref": purl(package)?,
        "name": name,
        "version": version,
        "purl": purl(package)?,
        "scope": if for_build { "excluded" } else { "required" },
        "hashes": [{ "alg": "SHA-256", "content": checksum }],
        "licenses": licences,
        "externalReferences": references,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                        checksum = \"aa\"\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n\
                        checksum = \"bb\"\n\n\
                        [[package]]\nname = \"wirespool\"\nversion = \"0.1.0\"\n";

    fn package(id: &str, kind: &str, is_ours: bool) -> Value {
        let (name, version) = id.split_once(' ').unwrap();
        let source = if is_ours { Value::Null } else { json!("registry") };
        json!({ "id": id, "name": name, "version": version, "source": source,
                "license": "MIT/Apache-2.0", "targets": [{ "kind": [kind] }] })
    }

    fn node(id: &str, needs: &[(&str, Option<&str>)]) -> Value {
        let dep = |(id, kind): &(&str, Option<&str>)| {
            let kinds = [json!({ "kind": kind })];
            json!({ "pkg": id, "dep_kinds": kinds })
        };
        json!({ "id": id, "deps": needs.iter().map(dep).collect::<Vec<_>>() })
    }

    fn metadata() -> Value {
        let nodes = [
            node("wirespool 0.1.0", &[("a 1.0.0", None), ("c 3.0.0", Some("dev"))]),
            node("a 1.0.0", &[("b 2.0.0", Some("build"))]),
            node("b 2.0.0", &[]),
            node("c 3.0.0", &[]),
        ];
        let packages = [
            package("wirespool 0.1.0", "bin", true),
            package("a 1.0.0", "lib", false),
            package("b 2.0.0", "lib", false),
            package("c 3.0.0", "lib", false),
        ];
        json!({ "packages": packages, "resolve": { "nodes": nodes } })
    }

    #[test]
    fn libraries_are_listed_with_their_hashes_and_tests_are_none() {
        let sbom = of(&metadata(), &checksums(LOCK)).unwrap();
        let components = sbom["components"].as_array().unwrap();
        let shown = components.iter().map(|it| (it["purl"].as_str(), it["scope"].as_str()));
        let expected = [
            (Some("pkg:cargo/a@1.0.0"), Some("required")),
            (Some("pkg:cargo/b@2.0.0"), Some("excluded")),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        assert_eq!(components[0]["hashes"][0]["content"], "aa");
        assert_eq!(components[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let depends = json!(["pkg:cargo/a@1.0.0"]);
        assert_eq!(sbom["dependencies"][0]["dependsOn"], depends);
    }

    #[test]
    fn a_library_without_a_checksum_is_an_error() {
        let lock = LOCK.replace("checksum = \"bb\"\n", "");
        assert!(of(&metadata(), &checksums(&lock)).is_err());
    }
}
