//! `cargo xtask release`: the binary, manual pages and completions as a Debian package and a
//! tarball in `dist/`.
//!
//! Pages and completions come from the binary itself, so they cannot differ from its flags. For
//! another architecture the same files come from the binary of this machine. At the end the package
//! is unpacked and what is in it is run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::process::{cargo, command, output, root, run as run_command, text};
use crate::{installed, reproduce, sbom};

/// Where each shell looks for the completions of a command.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/wirespool"),
    ("zsh", "usr/share/zsh/vendor-completions/_wirespool"),
    ("fish", "usr/share/fish/vendor_completions.d/wirespool.fish"),
];
const DOCUMENTS: [&str; 5] =
    ["README.md", "CHANGELOG.md", "SECURITY.md", "docs/service.md", "docs/config.md"];
/// The list of checksums, and what its signature is for.
const CHECKSUMS: &str = "SHA256SUMS";
const NAMESPACE: &str = "wirespool-release";
/// Files of `xtask/package`, and where a system looks for them.
const PACKAGED: [(&str, &str); 7] = [
    ("sysusers.conf", "usr/lib/sysusers.d/wirespool.conf"),
    ("60-wirespool.rules", "usr/lib/udev/rules.d/60-wirespool.rules"),
    ("wirespool@.service", "usr/lib/systemd/system/wirespool@.service"),
    ("wirespool.service", "usr/lib/systemd/system/wirespool.service"),
    ("wirespool.socket", "usr/lib/systemd/system/wirespool.socket"),
    ("wirespool.toml", "usr/share/doc/wirespool/examples/wirespool.toml"),
    ("xdp.conf", "usr/share/doc/wirespool/examples/xdp.conf"),
];

/// What dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Files that a system's owner copies where they belong.
const EXAMPLES: [&str; 2] =
    ["contrib/prometheus/wirespool.rules.yml", "contrib/grafana/wirespool.json"];

/// One architecture under the names that Debian and the tools of GNU give it.
struct Architecture {
    debian: &'static str,
    machine: String,
    target: String,
    is_native: bool,
}

/// What `cargo metadata` knows about the product.
struct Product {
    version: String,
    description: String,
    target_folder: PathBuf,
}

/// Builds everything for the target, or for this machine.
pub(crate) fn run(target: Option<&str>, key: Option<&str>) -> Result<bool> {
    let architecture = Architecture::new(target)?;
    let product = Product::read()?;
    let native = build(&product, None)?;
    let binary = match target {
        Some(target) if !architecture.is_native => build(&product, Some(target))?,
        _ => native.clone(),
    };
    let stage = product.target_folder.join("package").join(architecture.debian);
    if stage.exists() {
        fs::remove_dir_all(&stage).context("cannot empty the stage")?;
    }
    install_files(&stage, &native)?;
    let list = sbom::sbom(&architecture.target)?;
    write(&stage.join("usr/share/doc/wirespool/sbom.cdx.json"), list.as_bytes())?;
    let installed = stage.join("usr/bin/wirespool");
    install(&installed, &binary)?;
    run_command(command(&architecture.tool("strip"), &["--strip-debug"]).arg(&installed))?;
    let dist = root().join("dist");
    fs::create_dir_all(&dist).context("cannot create dist/")?;
    tarball(&product, &architecture, &stage, &dist)?;
    let package = debian_package(&product, &architecture, &stage, &dist)?;
    let name = format!("wirespool-{}-{}.cdx.json", product.version, architecture.machine);
    write(&dist.join(name), list.as_bytes())?;
    checksums(&dist, key)?;
    if architecture.is_native {
        prove(&product, &package)?;
    }
    Ok(true)
}

impl Architecture {
    fn new(target: Option<&str>) -> Result<Architecture> {
        let host = text(&mut command("rustc", &["-vV"]))?;
        let host = host.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.context("rustc does not name its host")?;
        let target = target.unwrap_or(host);
        let machine = target.split('-').next().unwrap_or_default().to_owned();
        let debian = match machine.as_str() {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            _ => bail!("no package for {target}: x86_64 and aarch64 are supported"),
        };
        let is_native = target == host;
        Ok(Architecture { debian, machine, target: target.to_owned(), is_native })
    }

    /// The name of a tool of binutils for this architecture.
    fn tool(&self, name: &str) -> String {
        if self.is_native { name.to_owned() } else { format!("{}-linux-gnu-{name}", self.machine) }
    }
}

impl Product {
    fn read() -> Result<Product> {
        let metadata = text(&mut cargo(&["metadata", "--no-deps", "--format-version=1"]))?;
        let metadata: Value =
            serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
        let packages = metadata.get("packages").and_then(Value::as_array).context("no packages")?;
        let is_product = |package: &&Value| string(package, "name").is_ok_and(|n| n == "wirespool");
        let product = packages.iter().find(is_product).context("no package wirespool")?;
        Ok(Product {
            version: string(product, "version")?.to_owned(),
            description: string(product, "description")?.to_owned(),
            target_folder: PathBuf::from(string(&metadata, "target_directory")?),
        })
    }
}

fn string<'v>(value: &'v Value, name: &str) -> Result<&'v str> {
    value.get(name).and_then(Value::as_str).with_context(|| format!("cargo metadata has no {name}"))
}

fn build(product: &Product, target: Option<&str>) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--release", "--locked", "--package", "wirespool"]);
    build.args(["--features", sbom::FEATURES]).envs(reproduce::flags(&root())?);
    if let Some(target) = target {
        build.args(["--target", target]);
    }
    run_command(&mut build)?;
    Ok(product.target_folder.join(target.unwrap_or_default()).join("release/wirespool"))
}

/// Everything but the binary, where a Debian system expects it.
fn install_files(stage: &Path, binary: &Path) -> Result<()> {
    let pages = stage.join("usr/share/man/man1");
    fs::create_dir_all(&pages).context("cannot create the stage")?;
    let program = binary.to_str().context("the path of the target folder is not text")?;
    run_command(command(program, &["generate", "man"]).arg(&pages))?;
    for page in fs::read_dir(&pages).context("no manual pages")? {
        // Without name and time, so that two builds give the same bytes.
        run_command(command("gzip", &["-9n"]).arg(page.context("no manual page")?.path()))?;
    }
    for (shell, path) in COMPLETIONS {
        let script = output(&mut command(program, &["generate", "completions", shell]))?;
        write(&stage.join(path), &script)?;
    }
    let documents = DOCUMENTS.map(|document| ("usr/share/doc/wirespool", document));
    let examples = EXAMPLES.map(|example| ("usr/share/doc/wirespool/examples", example));
    for (folder, file) in documents.into_iter().chain(examples) {
        let name = Path::new(file).file_name().expect("files have names");
        install(&stage.join(folder).join(name), &root().join(file))?;
    }
    install(&stage.join("usr/share/doc/wirespool/copyright"), &root().join("LICENSE"))?;
    install_packaged(stage)
}

fn install_packaged(stage: &Path) -> Result<()> {
    let sources = root().join("xtask/package");
    PACKAGED.iter().try_for_each(|(name, path)| install(&stage.join(path), &sources.join(name)))
}

fn install(to: &Path, from: &Path) -> Result<()> {
    create_folder_of(to)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    create_folder_of(path)?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn create_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().expect("a file has a folder");
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

fn tarball(product: &Product, arch: &Architecture, stage: &Path, dist: &Path) -> Result<()> {
    let name = format!("wirespool-{}-{}-linux", product.version, arch.machine);
    let file = dist.join(format!("{name}.tar.gz"));
    let rename = format!("--transform=s,^usr,{name},");
    let plain = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--gzip", "--create"];
    let mut tar = command("tar", &plain);
    tar.arg(rename).arg(format!("--mtime=@{}", commit_time()?));
    run_command(tar.arg("--file").arg(&file).arg("--directory").arg(stage).arg("usr"))?;
    println!("{}", file.display());
    Ok(())
}

fn debian_package(
    product: &Product,
    architecture: &Architecture,
    stage: &Path,
    dist: &Path,
) -> Result<PathBuf> {
    let binary = fs::read(stage.join("usr/bin/wirespool")).context("cannot read the binary")?;
    let control = control(product, architecture.debian, &glibc_version(&binary)?);
    write(&stage.join("DEBIAN/control"), control.as_bytes())?;
    for script in SCRIPTS {
        install(&stage.join("DEBIAN").join(script), &root().join("xtask/package").join(script))?;
    }
    let name = format!("wirespool_{}_{}.deb", product.version, architecture.debian);
    let file = dist.join(name);
    let mut pack = command("dpkg-deb", &["--root-owner-group", "--build"]);
    run_command(pack.env("SOURCE_DATE_EPOCH", commit_time()?).arg(stage).arg(&file))?;
    println!("{}", file.display());
    Ok(file)
}

/// SHA-256 of every file in `dist/`, in the form of sha256sum, and its signature by a key of
/// OpenSSH.
fn checksums(dist: &Path, key: Option<&str>) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dist).context("no dist/")? {
        let name = entry.context("cannot list dist/")?.file_name().to_string_lossy().into_owned();
        if !name.starts_with(CHECKSUMS) {
            names.push(name);
        }
    }
    names.sort();
    let mut sums = Command::new("sha256sum");
    let sums = output(sums.current_dir(dist).arg("--").args(&names))?;
    let file = dist.join(CHECKSUMS);
    write(&file, &sums)?;
    let signature = dist.join(format!("{CHECKSUMS}.sig"));
    if signature.exists() {
        fs::remove_file(&signature).context("cannot remove the old signature")?;
    }
    if let Some(key) = key {
        let mut sign = command("ssh-keygen", &["-Y", "sign", "-n", NAMESPACE, "-f", key]);
        run_command(sign.arg(&file))?;
    }
    println!("{}", file.display());
    Ok(())
}

/// The time of the last commit stands in for the time of the build, so that builds can be compared.
fn commit_time() -> Result<String> {
    Ok(text(&mut command("git", &["log", "-1", "--format=%ct"]))?.trim().to_owned())
}

fn control(product: &Product, architecture: &str, glibc: &str) -> String {
    let Product { version, description, .. } = product;
    let (name, rest) = description.split_once(": ").unwrap_or((description, ""));
    format!(
        "Package: wirespool\nVersion: {version}\nArchitecture: {architecture}\n\
         Maintainer: The wirespool maintainers <maintainers@wirespool.invalid>\n\
         Section: net\nPriority: optional\nDepends: libc6 (>= {glibc})\n\
         Recommends: libpcap0.8\nDescription: {name}\n {rest}\n"
    )
}

/// The newest version of glibc that the binary asks for, from the version names in its symbol
/// table.
fn glibc_version(binary: &[u8]) -> Result<String> {
    const MARK: &[u8] = b"GLIBC_";
    let found = binary.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let versions: BTreeSet<Vec<u32>> = found
        .filter_map(|(offset, _)| {
            let tail = binary.get(offset + MARK.len()..)?;
            let name: Vec<u8> =
                tail.iter().copied().take_while(|byte| *byte != 0).take(12).collect();
            let numbers = String::from_utf8(name).ok()?;
            numbers.split('.').map(|number| number.parse().ok()).collect()
        })
        .collect();
    let newest = versions.last().context("the binary does not name a version of glibc")?;
    Ok(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

/// Unpacks the package into an empty folder and runs what is in it.
fn prove(product: &Product, package: &Path) -> Result<()> {
    let place = product.target_folder.join("package/unpacked");
    if place.exists() {
        fs::remove_dir_all(&place).context("cannot empty the folder for unpacking")?;
    }
    run_command(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&place))?;
    let binary = place.join("usr/bin/wirespool");
    let version = text(Command::new(&binary).arg("--version"))?;
    let expected = format!("wirespool {}", product.version);
    ensure!(version.trim().starts_with(&expected), "{version:?} is not {expected:?}");
    let pages = fs::read_dir(place.join("usr/share/man/man1")).context("no manual pages")?.count();
    ensure!(pages > 0, "the package has no manual page");
    for (shell, path) in COMPLETIONS {
        ensure!(place.join(path).exists(), "the package has no completions for {shell}");
    }
    if let Some(reason) = installed::check(package, &place.with_file_name("installed"))? {
        println!("not run: the package is not installed and removed: {reason}");
    }
    run_command(Command::new(&binary).arg("demo"))
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn the_newest_glibc_that_is_asked_for_is_found() {
        let binary = b"\0GLIBC_2.9\0x\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE\0";
        assert_eq!(glibc_version(binary).unwrap(), "2.34");
        assert!(glibc_version(b"static").is_err());
    }

    /// With everything but what comes out of the binary: that takes a build.
    #[test]
    fn the_package_is_installed_upgraded_removed_and_purged_without_a_trace() {
        let name = format!("wirespool-package-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let stage = folder.join("stage");
        install_packaged(&stage).unwrap();
        for script in SCRIPTS {
            let from = root().join("xtask/package").join(script);
            install(&stage.join("DEBIAN").join(script), &from).unwrap();
        }
        let product = Product {
            version: "0.0.1".to_owned(),
            description: "A recorder: every packet.".to_owned(),
            target_folder: PathBuf::new(),
        };
        write(&stage.join("DEBIAN/control"), control(&product, "all", "2.34").as_bytes()).unwrap();
        let package = folder.join("package.deb");
        let mut pack = command("dpkg-deb", &["--root-owner-group", "-Znone", "--build"]);
        let checked = match pack.arg(&stage).arg(&package).stdout(Stdio::null()).status() {
            Ok(packed) => {
                assert!(packed.success());
                installed::check(&package, &folder.join("layer"))
            }
            Err(error) => Ok(Some(format!("dpkg-deb: {error}"))),
        };
        fs::remove_dir_all(&folder).unwrap();
        if let Some(reason) = checked.unwrap() {
            println!("not run: {reason}");
        }
    }

    #[test]
    fn the_control_file_has_its_form() {
        let product = Product {
            version: "1.2.3".to_owned(),
            description: "A recorder: every packet.".to_owned(),
            target_folder: PathBuf::new(),
        };
        let control = control(&product, "arm64", "2.34");
        assert!(control.contains("Version: 1.2.3\nArchitecture: arm64\n"));
        assert!(control.contains("Depends: libc6 (>= 2.34)\n"));
        assert!(control.ends_with("Description: A recorder\n every packet.\n"));
    }
}
