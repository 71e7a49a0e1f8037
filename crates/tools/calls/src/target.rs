//! What descriptors lead to.

use core::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// The ends of a socket, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ends {
    /// Its own.
    pub local: Option<SocketAddr>,
    /// The other one.
    pub remote: Option<SocketAddr>,
}

/// What a descriptor leads to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Target {
    /// A file, a folder or a device.
    File(PathBuf),
    /// A socket of IP.
    Socket(Ends),
    /// A socket of this machine, with the path that it was connected to.
    Local(Option<PathBuf>),
    /// A pipe, by its number.
    Pipe(String),
    /// Something of the kernel to wait at: an `eventfd`, `timerfd`, `epoll`.
    Event(String),
    /// A terminal.
    Terminal(PathBuf),
    /// Anything else, as the kernel names it.
    Other(String),
}

impl Target {
    /// By the link of `/proc/PID/fd`; a socket's number besides.
    pub(crate) fn of_link(link: &str) -> (Self, Option<u32>) {
        let numbered = |kind: &str| link.strip_prefix(kind)?.strip_suffix(']');
        if let Some(number) = numbered("socket:[") {
            return (Self::Socket(Ends::default()), number.parse().ok());
        }
        if numbered("pipe:[").is_some() {
            return (Self::Pipe(link.to_owned()), None);
        }
        if let Some(kind) = link.strip_prefix("anon_inode:") {
            let kind = kind.trim_start_matches('[').trim_end_matches(']');
            let target = match kind {
                "io_uring" => Self::Other(kind.to_owned()),
                kind => Self::Event(kind.to_owned()),
            };
            return (target, None);
        }
        let target = match link {
            link if link.starts_with("/dev/pts/") || link == "/dev/tty" => {
                Self::Terminal(PathBuf::from(link))
            }
            link if link.starts_with('/') => Self::File(PathBuf::from(link)),
            link => Self::Other(link.to_owned()),
        };
        (target, None)
    }

    /// The other end, of a socket of IP.
    pub fn remote(&self) -> Option<SocketAddr> {
        match self {
            Self::Socket(ends) => ends.remote,
            _ => None,
        }
    }

    /// Whether it is a file on some file system, and none of the kernel's own.
    pub fn is_file(&self) -> bool {
        let is_kernels = |path: &PathBuf| {
            ["/dev", "/proc", "/sys"].iter().any(|folder| path.starts_with(folder))
        };
        matches!(self, Self::File(path) if !is_kernels(path) || path.starts_with("/dev/shm"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: Option<SocketAddr>| end.map_or_else(|| "?".to_owned(), |it| it.to_string());
        match self {
            Self::File(path) | Self::Terminal(path) => write!(f, "{}", path.display()),
            Self::Socket(Ends { local: None, remote: None }) => write!(f, "a socket"),
            Self::Socket(Ends { local, remote: None }) => write!(f, "socket at {}", end(*local)),
            Self::Socket(Ends { local, remote }) => {
                write!(f, "socket {} to {}", end(*local), end(*remote))
            }
            Self::Local(Some(path)) => write!(f, "socket to {}", path.display()),
            Self::Local(None) => write!(f, "a socket of this machine"),
            Self::Pipe(name) | Self::Event(name) | Self::Other(name) => write!(f, "{name}"),
        }
    }
}

/// `struct sockaddr` of `AF_UNIX`, `AF_INET` and `AF_INET6`.
pub(crate) fn address(bytes: &[u8]) -> Option<Target> {
    let family = u16::from_le_bytes(*bytes.first_chunk()?);
    // The order of this machine, without asking for it: families are below 256.
    let family = if family > 255 { family.swap_bytes() } else { family };
    let port = || Some(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?));
    let ip = match family {
        1 => {
            let path = bytes.get(2..)?;
            // Names that begin with a zero are in no folder.
            let (mark, path) = match path {
                [0, rest @ ..] => ("@", rest),
                path => ("", path),
            };
            let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
            let path = format!("{mark}{}", String::from_utf8_lossy(path));
            return Some(Target::Local(
                Some(PathBuf::from(path)).filter(|it| it.as_os_str() != ""),
            ));
        }
        2 => IpAddr::V4(Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?)),
        10 => IpAddr::V6(Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?)),
        _ => return None,
    };
    let remote = Some(SocketAddr::new(ip.to_canonical(), port()?));
    Some(Target::Socket(Ends { local: None, remote }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_say_what_descriptors_lead_to() {
        let of = |link: &str| Target::of_link(link).0;
        assert_eq!(Target::of_link("socket:[77]"), (Target::Socket(Ends::default()), Some(77)));
        assert_eq!(of("pipe:[9]"), Target::Pipe("pipe:[9]".to_owned()));
        assert_eq!(of("anon_inode:[eventpoll]"), Target::Event("eventpoll".to_owned()));
        assert_eq!(of("anon_inode:inotify"), Target::Event("inotify".to_owned()));
        assert_eq!(of("/dev/pts/1"), Target::Terminal(PathBuf::from("/dev/pts/1")));
        assert!(of("/data/a").is_file() && !of("/dev/null").is_file());
    }

    #[test]
    fn addresses_are_those_of_connect() {
        let of = |bytes: &[u8]| address(bytes).unwrap().to_string();
        assert_eq!(of(&[2, 0, 0, 53, 127, 0, 0, 1, 0, 0]), "socket ? to 127.0.0.1:53");
        let mut six = [10, 0, 0, 80, 0, 0, 0, 0].to_vec();
        six.extend(Ipv6Addr::LOCALHOST.octets());
        assert_eq!(of(&six), "socket ? to [::1]:80");
        assert_eq!(of(b"\x01\0/run/x\0rest"), "socket to /run/x");
        assert_eq!(of(b"\x01\0\0name\0"), "socket to @name");
        assert_eq!((address(&[2, 0, 0]), address(&[16, 0, 1, 1])), (None, None));
    }
}
