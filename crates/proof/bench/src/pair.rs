//! A veth pair in a network namespace that goes with it; programs run inside.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Two ends, `left` and `right`.
#[derive(Debug)]
pub(crate) struct Pair {
    namespace: String,
}

impl Pair {
    pub(crate) fn new() -> Result<Self> {
        let namespace = format!("wirespool-bench-{}", std::process::id());
        ip(&["netns", "add", &namespace])?;
        let pair = Self { namespace };
        let quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 || true";
        pair.program("sh").args(["-c", quiet]).status()?;
        let inside = |arguments: &[&str]| ip(&[&["-n", &pair.namespace], arguments].concat());
        inside(&["link", "add", "left", "mtu", "9000", "type", "veth", "peer", "name", "right"])?;
        for end in ["left", "right"] {
            inside(&["link", "set", end, "mtu", "9000", "arp", "off", "up"])?;
        }
        Ok(pair)
    }

    /// A program that runs in the namespace.
    pub(crate) fn program(&self, name: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(self.entering()).arg(name).stderr(Stdio::null());
        command
    }

    /// Arguments of `ip` before a program that is to run in the namespace.
    pub(crate) fn entering(&self) -> [OsString; 3] {
        ["netns", "exec", &self.namespace].map(OsString::from)
    }

    /// Of the namespace.
    pub(crate) fn name(&self) -> &str {
        &self.namespace
    }

    /// Frames that have come out at the other end.
    pub(crate) fn received(&self) -> Result<u64> {
        let path = "/sys/class/net/right/statistics/rx_packets";
        let output = self.program("cat").arg(path).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.trim().parse().context("no counter of received packets")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // When that fails, too, there is no way left to report it.
        drop(ip(&["netns", "delete", &self.namespace]));
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let status = Command::new("ip").args(arguments).status().context("needs ip (iproute2)")?;
    ensure!(status.success(), "ip {}: {status}; this needs root", arguments.join(" "));
    Ok(())
}
