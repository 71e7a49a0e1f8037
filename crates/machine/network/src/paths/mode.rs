//! Speed and duplex of an interface, as its driver says (`SIOCETHTOOL`, `ETHTOOL_GSET`).

#![expect(unsafe_code, reason = "SIOCETHTOOL has no wrapper here")]

use std::os::fd::AsRawFd;

use host::native::u32_bytes;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// `linux/sockios.h`
const SIOCETHTOOL: libc::Ioctl = 0x8946;
/// `linux/ethtool.h`
const ETHTOOL_GSET: u32 = 1;
/// `struct ethtool_cmd`
const COMMAND: usize = 44;
const SPEED: usize = 12;
const DUPLEX: usize = 14;
const SPEED_HIGH: usize = 28;
const DUPLEX_HALF: u8 = 0;
const DUPLEX_FULL: u8 = 1;

/// Whether both sides of a link may send at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplex {
    /// One at a time.
    Half,
    /// Both.
    Full,
}

/// How a link runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkMode {
    /// Its speed in Mbit/s; `None` where the driver does not say.
    pub mbit_per_s: Option<u32>,
    /// Its duplex; `None` where the driver does not say.
    pub duplex: Option<Duplex>,
}

/// `struct ifreq` with a pointer.
#[repr(C)]
struct Request {
    name: [u8; 16],
    command: *mut [u8; COMMAND],
    rest: [u8; 16],
}

/// That of an interface of the namespace that this thread is in; `None` where its driver has none.
/// A driver may ask the card for it, which is slow: ask once, and again when the carrier changes.
pub fn link_mode(name: &str) -> Option<LinkMode> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).ok()?;
    let mut command = [0; COMMAND];
    command.first_chunk_mut::<4>()?.copy_from_slice(&u32_bytes(ETHTOOL_GSET));
    let mut request = Request { name: [0; 16], command: &raw mut command, rest: [0; 16] };
    // The last byte stays zero.
    request
        .name
        .get_mut(..name.len())
        .filter(|name| name.len() < 16)?
        .copy_from_slice(name.as_bytes());
    // SAFETY: the kernel reads and writes `struct ifreq` and `struct ethtool_cmd`, which both live
    // until the call returns and are at least as large as it takes them for.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    (done == 0).then(|| read(&command))
}

fn read(command: &[u8; COMMAND]) -> LinkMode {
    let short = |at: usize| {
        let bytes = command.get(at..).and_then(|rest| rest.first_chunk()).copied();
        u32::from(bytes.map_or(0, u16::from_ne_bytes))
    };
    let speed = short(SPEED_HIGH) << 16 | short(SPEED);
    let duplex = match command.get(DUPLEX) {
        Some(&DUPLEX_HALF) => Some(Duplex::Half),
        Some(&DUPLEX_FULL) => Some(Duplex::Full),
        _ => None,
    };
    // Unknown is 0, or the highest number of 16 or 32 bits.
    let is_known = !matches!(speed, 0 | 0xffff | u32::MAX);
    LinkMode { mbit_per_s: is_known.then_some(speed), duplex }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_and_what_has_none_is_none() {
        assert_eq!(link_mode("no-such-thing"), None);
        assert_eq!(link_mode("a-name-that-is-much-too-long"), None);
        let mut command = [0; COMMAND];
        command[SPEED..SPEED + 2].copy_from_slice(&[100, 100]);
        let half = LinkMode { mbit_per_s: Some(0x6464), duplex: Some(Duplex::Half) };
        assert_eq!(read(&command), half);
        command[DUPLEX] = 0xff;
        command[SPEED..SPEED + 2].copy_from_slice(&[0xff; 2]);
        command[SPEED_HIGH..SPEED_HIGH + 2].copy_from_slice(&[0xff; 2]);
        assert_eq!(read(&command), LinkMode { mbit_per_s: None, duplex: None });
    }

    #[test]
    fn a_pair_runs_at_full_duplex() {
        if let Err(error) = crate::enter_namespace() {
            println!("not run: {error}");
            return;
        }
        crate::make_pair(["left", "right"], 1500).unwrap();
        let mode = link_mode("left");
        assert_eq!(mode.and_then(|mode| mode.duplex), Some(Duplex::Full), "{mode:?}");
    }
}
