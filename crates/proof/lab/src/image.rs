//! What the guest starts from: programs of this machine with their libraries, the kernel's modules,
//! and the cases. Made anew for every run of the lab, in memory.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::case::Case;
use crate::cpio::Archive;
use crate::kernel::Kernel;
use crate::tools;

/// Of the machine, for every case.
const PROGRAMS: [&str; 3] = ["busybox", "dmsetup", "ip"];
const MODULES: [&str; 7] =
    ["virtio_pci", "virtio_blk", "virtio_scsi", "sd_mod", "veth", "dm_mod", "crc32c_generic"];
const FOLDERS: [&str; 6] = ["dev", "proc", "sys", "run", "tmp", "root"];

/// Our own programs.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) wirespool: PathBuf,
    pub(crate) lab: PathBuf,
}

/// Programs that the cases need and this machine does not have.
pub(crate) fn missing<'a>(needs: impl Iterator<Item = &'a str>) -> Option<String> {
    let absent: BTreeSet<&str> =
        PROGRAMS.into_iter().chain(needs).filter(|name| tools::find(name).is_none()).collect();
    let names: Vec<&str> = absent.into_iter().collect();
    (!names.is_empty()).then(|| format!("{} not installed", names.join(", ")))
}

/// The initial file system for these cases. Its scripts lie in `scripts`.
pub(crate) fn build(
    kernel: &Kernel,
    scripts: &Path,
    programs: &Programs,
    cases: &[&Case],
) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for folder in FOLDERS {
        archive.folder(folder);
    }
    for (name, script) in [("/init", "init.sh"), ("/lab/guest.sh", "guest.sh")] {
        archive.file(name, &read(&scripts.join(script))?);
    }
    let needs = cases.iter().flat_map(|case| case.needs.iter().map(String::as_str));
    for name in PROGRAMS.into_iter().chain(needs) {
        let path = tools::find(name).with_context(|| format!("{name} is not installed"))?;
        program(&mut archive, name, &path)?;
    }
    program(&mut archive, "wirespool", &programs.wirespool)?;
    program(&mut archive, "lab", &programs.lab)?;
    for case in cases {
        let modules = case.modules.iter().map(String::as_str);
        let names: Vec<&str> = MODULES.into_iter().chain(modules).collect();
        let mut order = String::new();
        for (name, content) in kernel.load_order(&names)? {
            archive.file(&format!("/lab/modules/{name}.ko"), &content);
            order.push_str(&name);
            order.push('\n');
        }
        archive.file(&format!("/lab/cases/{}.modules", case.name), order.as_bytes());
        archive.file(&format!("/lab/cases/{}.sh", case.name), case.script.as_bytes());
    }
    Ok(archive.finish())
}

fn program(archive: &mut Archive, name: &str, path: &Path) -> Result<()> {
    let inside = format!("/bin/{name}");
    if archive.contains(&inside) {
        return Ok(());
    }
    archive.file(&inside, &read(path)?);
    for library in tools::libraries(path)? {
        let inside = library.to_str().context("a library's path is text")?;
        archive.file(inside, &read(&library)?);
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
