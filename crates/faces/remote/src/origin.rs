//! Where a service is: `https://HOST[:PORT]`, or `http` on this machine.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use hyper::Uri;
use page::safe::printable;

const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;

/// A URL that is none of a service.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {why}", printable(text))]
pub struct NoOrigin {
    text: String,
    why: &'static str,
}

/// The origin of a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    pub(crate) has_tls: bool,
    /// Without the brackets of IPv6.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Origin {
    /// Whether something that is not encrypted may go to this address.
    pub(crate) fn may_reach(&self, address: IpAddr) -> bool {
        self.has_tls || address.is_loopback()
    }

    /// As a request names it.
    pub(crate) fn authority(&self) -> String {
        https::authority(&self.host, self.port, self.has_tls)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", printable(&self.authority()))
    }
}

impl FromStr for Origin {
    type Err = NoOrigin;

    /// # Errors
    /// [`NoOrigin`] for another scheme, a path, a name or a password in it.
    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let refused = |why| NoOrigin { text: text.to_owned(), why };
        let uri: Uri = text.parse().map_err(|_| refused("it is no URL"))?;
        let has_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(refused("write https://HOST or https://HOST:PORT")),
        };
        let authority = uri.authority().ok_or_else(|| refused("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("a credential has no place in it: see --remote-token-file"));
        }
        if uri.query().is_some() || !matches!(uri.path(), "" | "/") {
            return Err(refused("it has a path: only scheme, host and port are wanted"));
        }
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let port = if has_tls { HTTPS_PORT } else { HTTP_PORT };
        let named = authority.as_str().strip_prefix(host).unwrap_or_default();
        let port = match (named, authority.port_u16()) {
            ("", _) => port,
            (_, Some(port)) if port > 0 => port,
            _ => return Err(refused("its port is none")),
        };
        let host = bare.unwrap_or(host).to_owned();
        if host.is_empty() {
            return Err(refused("it names no host"));
        }
        // Of a name the addresses decide, when they are known.
        let is_beyond = host.parse().is_ok_and(|address: IpAddr| !address.is_loopback());
        if !has_tls && is_beyond {
            return Err(refused("beyond this machine only https is spoken"));
        }
        Ok(Self { has_tls, host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_by_scheme_host_and_port() {
        for (text, shown, port) in [
            ("https://sensor.example", "https://sensor.example", 443),
            ("https://sensor.example/", "https://sensor.example", 443),
            ("https://sensor.example:8420", "https://sensor.example:8420", 8420),
            ("HTTPS://Sensor:443", "https://Sensor", 443),
            ("https://[2001:db8::1]:8420", "https://[2001:db8::1]:8420", 8420),
            ("http://127.0.0.1:8420", "http://127.0.0.1:8420", 8420),
            ("http://[::1]", "http://[::1]", 80),
            ("http://localhost:1", "http://localhost:1", 1),
        ] {
            let origin: Origin = text.parse().unwrap();
            assert_eq!((origin.to_string().as_str(), origin.port), (shown, port));
        }
        for text in [
            "",
            "sensor",
            "sensor:8420",
            "ftp://sensor",
            "https://",
            "https:///x",
            "//sensor",
            "https://sensor/api",
            "https://sensor?x",
            "https://me:secret@sensor",
            "file:///etc",
            "https://sensor:0",
            "https://sensor:70000",
            "https://sensor:",
            "http://10.0.0.1",
            "http://[2001:db8::1]",
            "https://a b",
            "https://a\u{1b}[31m",
            "https://\u{e9}",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_not_encrypted_stays_on_this_machine() {
        let plain: Origin = "http://localhost".parse().unwrap();
        let sealed: Origin = "https://localhost".parse().unwrap();
        for (address, may) in [("127.0.0.1", true), ("::1", true), ("10.0.0.1", false)] {
            assert_eq!(plain.may_reach(address.parse().unwrap()), may, "{address}");
            assert!(sealed.may_reach(address.parse().unwrap()));
        }
    }
}
