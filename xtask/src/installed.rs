//! What a package does where it is installed: in the root of this machine with an empty layer over
//! it, so that nothing of it is changed.
//!
//! Installed, installed over itself, removed and purged by dpkg. At the end nothing is left but
//! what was put into its folders, and the user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// Enters the root, in which the fourth argument is run: the layer, a folder for the kernel's work
/// beside it, and where both are seen as one. All mounts end with the namespace. Without /run of
/// the machine no script talks to its services.
const ENTER: &str = "mount -t overlay -o \"lowerdir=/,upperdir=$1,workdir=$2\" overlay \"$3\" && \
                     mount --rbind /dev \"$3/dev\" && mount -t proc proc \"$3/proc\" && \
                     mount -t tmpfs tmpfs \"$3/run\" && mount -t tmpfs tmpfs \"$3/sys\" && \
                     exec chroot \"$3\" /usr/bin/env -i HOME=/root LC_ALL=C \
                     PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                     DEBIAN_FRONTEND=noninteractive sh -c \"$4\"";
/// Owner, group and mode as the units want them.
const FOLDERS: &str = "wirespool:wirespool 700\nwirespool:wirespool 700\n";
const STAT: &str = "stat -c '%U:%G %a' /etc/wirespool /var/lib/wirespool";
const WANTS: &str = "/etc/systemd/system/multi-user.target.wants";

/// The layer; removed when dropped.
struct Layer {
    folder: PathBuf,
}

impl Drop for Layer {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            println!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

impl Layer {
    /// In `folder`, which is new; `Err` with the reason where that cannot be.
    fn new(folder: PathBuf) -> Result<Result<Self, String>> {
        for name in ["upper", "work", "root"] {
            fs::create_dir_all(folder.join(name)).context("cannot make the layer")?;
        }
        let layer = Self { folder };
        let tried = layer.shell("command -v dpkg").stdout(Stdio::null()).output();
        Ok(match tried.context("cannot run unshare")? {
            tried if tried.status.success() => Ok(layer),
            tried => Err(String::from_utf8_lossy(&tried.stderr).trim().to_owned()),
        })
    }

    fn shell(&self, line: &str) -> Command {
        let mut shell = Command::new("unshare");
        shell.args([
            "--mount",
            "--pid",
            "--net",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            ENTER,
            "sh",
        ]);
        shell.args(["upper", "work", "root"].map(|name| self.folder.join(name)));
        shell.arg(line).stdin(Stdio::null());
        shell
    }

    /// What a line prints, on both ways; an error unless it succeeds.
    fn run(&self, line: &str) -> Result<String> {
        let ran = self.shell(&format!("{{ {line}; }} 2>&1")).output();
        let ran = ran.with_context(|| format!("cannot run {line}"))?;
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        if !ran.status.success() {
            bail!("{line}: {}: {said}", ran.status);
        }
        Ok(said)
    }
}

/// Installs the package, again, and takes it away, by steps that fail with what is wrong; gives a
/// reason where that cannot be tried here. `folder` is for this alone.
pub(crate) fn check(package: &Path, folder: &Path) -> Result<Option<String>> {
    let here = ["/etc/wirespool", "/var/lib/wirespool", "/usr/bin/wirespool"];
    if let Some(place) = here.iter().find(|place| Path::new(place).exists()) {
        return Ok(Some(format!("{place} is on this machine already")));
    }
    let layer = match Layer::new(folder.to_path_buf())? {
        Ok(layer) => layer,
        Err(reason) => return Ok(Some(format!("no layer over this machine's root: {reason}"))),
    };
    let inside = folder.join("upper/package.deb");
    fs::copy(package, &inside).context("cannot copy the package")?;
    let install = "dpkg --force-depends --install /package.deb";
    layer.run(install)?;
    let made = layer.run(STAT)?;
    ensure!(made == FOLDERS, "its folders are {made}");
    let user = layer.run("getent passwd wirespool")?;
    ensure!(user.contains(":/var/lib/wirespool:/usr/sbin/nologin"), "its user is {user}");
    let changed = layer.run("dpkg --verify wirespool")?;
    ensure!(changed.is_empty(), "not as packed: {changed}");

    // What its owner has made of it stays through an upgrade and a removal.
    layer.run("chmod 0750 /etc/wirespool && echo kept > /etc/wirespool/keys")?;
    layer.run(&format!("mkdir -p {WANTS} && ln -s /lib/x {WANTS}/wirespool@eth0.service"))?;
    layer.run(install)?;
    let modes = layer.run("stat -c %a /etc/wirespool")?;
    ensure!(modes == "750\n", "an upgrade made the mode of /etc/wirespool {modes}");
    layer.run("dpkg --remove wirespool")?;
    layer.run(&format!("test -e /etc/wirespool/keys && test -L {WANTS}/wirespool@eth0.service"))?;
    let purged = layer.run("dpkg --purge wirespool")?;
    ensure!(purged.contains("/etc/wirespool stays"), "a purge says: {purged}");
    layer
        .run(&format!("test -e /etc/wirespool/keys && ! test -L {WANTS}/wirespool@eth0.service"))?;

    // With nothing in them its folders go.
    layer.run(&format!("rm -r /etc/wirespool && {install} && dpkg --purge wirespool"))?;
    let find = "find /etc /usr /var/lib -name '*wirespool*' -newer /package.deb";
    let left = layer.run(find)?;
    ensure!(left.is_empty(), "a purge leaves {left}");
    without_systemd(&layer, install)
}

/// In a container the user is made, too.
fn without_systemd(layer: &Layer, install: &str) -> Result<Option<String>> {
    layer.run("userdel wirespool; rm -f /usr/bin/systemd-sysusers /bin/systemd-sysusers")?;
    layer.run(install)?;
    let made = layer.run(STAT)?;
    ensure!(made == FOLDERS, "without systemd its folders are {made}");
    layer.run("dpkg --purge wirespool")?;
    Ok(None)
}
