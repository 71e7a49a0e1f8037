//! Debian's kernel: downloaded as any user can, unpacked into a cache directory, never installed.
//!
//! The package of the machine's own release is taken, whichever that is. When apt's lists are
//! empty or old, own lists are fetched beside the cache.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::tools;

const PACKAGE: &str = "linux-image-amd64";
/// Held by this name until it is complete.
const UNPACKING: &str = "unpacking";

/// An unpacked kernel package.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// What boots.
    pub(crate) image: PathBuf,
    /// Every module by its name, with underscores.
    modules: BTreeMap<String, PathBuf>,
}

impl Kernel {
    /// The kernel in the cache; downloads it the first time.
    pub(crate) fn get(cache: &Path) -> Result<Kernel> {
        let folder = cache.join("kernel");
        if !folder.is_dir() {
            download(cache).context("cannot get Debian's kernel package with apt-get download")?;
        }
        let image = tools::files(&folder.join("boot"))?
            .into_iter()
            .find(|path| name(path).starts_with("vmlinuz"))
            .with_context(|| format!("{} holds no kernel: remove it", folder.display()))?;
        let modules = tools::files(&folder)?.into_iter().filter_map(|path| {
            let stem = name(&path).split_once(".ko")?.0.replace('-', "_");
            Some((stem, path))
        });
        Ok(Kernel { image, modules: modules.collect() })
    }

    /// The contents of modules with all they need, in the order in which they can be loaded. Names
    /// that the package does not have are built into the kernel.
    pub(crate) fn load_order(&self, names: &[&str]) -> Result<Vec<(String, Vec<u8>)>> {
        let mut order = Vec::new();
        for name in names {
            self.append(&name.replace('-', "_"), &mut order)?;
        }
        Ok(order)
    }

    fn append(&self, name: &str, order: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
        let is_done = order.iter().any(|(done, _)| done == name);
        let Some(path) = self.modules.get(name).filter(|_| !is_done) else { return Ok(()) };
        let content = content(path)?;
        for needed in needed(&content) {
            self.append(&needed, order)?;
        }
        order.push((name.to_owned(), content));
        Ok(())
    }
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Newer releases compress their modules.
fn content(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_some_and(|extension| extension == "xz") {
        return tools::output(Command::new("xz").arg("-dc").arg(path));
    }
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// What a module's own description says it needs: "depends=a,b" in the section .modinfo.
fn needed(module: &[u8]) -> Vec<String> {
    let fields = module.split(|byte| *byte == 0);
    let depends = fields.filter_map(|field| field.strip_prefix(b"depends=")).next_back();
    let text = String::from_utf8_lossy(depends.unwrap_or_default()).replace('-', "_");
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn download(cache: &Path) -> Result<()> {
    let folder = cache.join(UNPACKING);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    println!("lab: downloading Debian's kernel into {}", cache.display());
    let system = fetch(&folder, &[]);
    if system.is_err() {
        let lists = own_lists(cache)?;
        let options: Vec<&str> = lists.iter().map(String::as_str).collect();
        let update = [options.as_slice(), &["-qq", "update"]].concat();
        tools::output(Command::new("apt-get").args(update))?;
        fetch(&folder, &options)?;
    }
    let packages = tools::files(&folder)?;
    ensure!(packages.len() == 1, "apt-get downloaded {} files", packages.len());
    for package in packages {
        tools::output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&folder))?;
        fs::remove_file(&package)?;
    }
    Ok(fs::rename(&folder, cache.join("kernel"))?)
}

/// The metapackage names the package with the kernel in it.
fn fetch(folder: &Path, options: &[&str]) -> Result<()> {
    let mut depends = Command::new("apt-cache");
    let answer = tools::output(depends.args(options).args(["depends", PACKAGE]))?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let package = answer.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let package = package.with_context(|| format!("{PACKAGE} is not in the lists of packages"))?;
    let mut download = Command::new("apt-get");
    download.args(options).args(["-qq", "download", package]).current_dir(folder);
    tools::output(&mut download).map(drop)
}

/// Options that keep lists of packages in the cache, where no privilege is needed.
fn own_lists(cache: &Path) -> Result<[String; 4]> {
    for part in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(cache.join("apt").join(part))?;
    }
    let folder = cache.join("apt");
    let folder = folder.display();
    Ok([
        format!("-oDir::State::lists={folder}/lists"),
        format!("-oDir::Cache={folder}"),
        "-oAPT::Sandbox::User=".to_owned(),
        "-oDebug::NoLocking=1".to_owned(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_loaded_after_what_they_need() {
        let folder = tempfile::tempdir().unwrap();
        let mut modules = BTreeMap::new();
        for (name, depends) in [("a", "b,c-d"), ("b", "c_d"), ("c_d", ""), ("e", "built_in")] {
            let path = folder.path().join(format!("{name}.ko"));
            fs::write(&path, format!("ELF\0license=GPL\0depends={depends}\0name={name}\0"))
                .unwrap();
            modules.insert(name.to_owned(), path);
        }
        let kernel = Kernel { image: PathBuf::new(), modules };
        let order = kernel.load_order(&["a", "e", "c-d"]).unwrap();
        let names: Vec<&str> = order.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["c_d", "b", "a", "e"]);
    }
}
