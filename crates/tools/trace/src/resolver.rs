//! Whom a program in a namespace of its own asks for names.

use std::net::IpAddr;
use std::path::Path;

use host::read_text;

/// Where resolvers that listen on this machine only say whom they ask.
const UPSTREAM: [&str; 2] =
    ["/run/systemd/resolve/resolv.conf", "/run/NetworkManager/no-stub-resolv.conf"];

/// What a program finds as its `/etc/resolv.conf`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resolver {
    /// What this machine has: it is reached from elsewhere, too.
    AsItIs,
    /// Whom the resolver of this machine asks, which listens on the loopback only.
    Upstream(String),
    /// Such a resolver, which does not say whom it asks.
    Unknown,
}

impl Resolver {
    /// Of this machine.
    pub fn of_machine() -> Self {
        let Ok(text) = read_text(Path::new("/etc/resolv.conf")) else { return Self::AsItIs };
        if !is_local(&text) {
            return Self::AsItIs;
        }
        // Who answers on this machine's loopback is not reached from another namespace.
        let texts = UPSTREAM.iter().filter_map(|path| read_text(Path::new(path)).ok());
        let is_asked = |text: &String| servers(text).next().is_some() && !is_local(text);
        texts.into_iter().find(is_asked).map_or(Self::Unknown, Self::Upstream)
    }

    /// Another text than this machine has; none where that is as good.
    pub fn text(self) -> Option<String> {
        match self {
            Self::Upstream(text) => Some(text),
            Self::AsItIs | Self::Unknown => None,
        }
    }
}

fn servers(text: &str) -> impl Iterator<Item = IpAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.trim().parse().ok())
}

/// All of its name servers are on the loopback.
fn is_local(text: &str) -> bool {
    servers(text).all(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolver_on_the_loopback_is_told_from_others() {
        assert!(is_local("nameserver 127.0.0.53\noptions edns0\n"));
        assert!(is_local("nameserver ::1\n"));
        assert!(!is_local("nameserver 127.0.0.53\nnameserver 192.0.2.1\n"));
        assert!(is_local("# nameserver 192.0.2.1\n"), "the one of the C library is local");
    }
}
