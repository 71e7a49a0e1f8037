//! Addresses of a provider.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

const URL_BYTES_MAX: usize = 2048;

/// An address with `https`, or with `http` at this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Url {
    pub(crate) is_sealed: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query, from its slash on.
    pub(crate) path: String,
    text: String,
}

impl Url {
    /// The parts of an address.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || text.len() > URL_BYTES_MAX || text.contains(['\\', '#', '"', '<', '>']) {
            return Err("it is no URL");
        }
        let (scheme, rest) = text.split_once("://").ok_or("it is no URL")?;
        let is_sealed = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err("it is no URL of https"),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at_checked(end).ok_or("it is no URL")?;
        let (host, port) = place_of(place).ok_or("its host or port is none")?;
        if !is_sealed && !is_here(&host) {
            return Err("http is for this machine alone: beyond it a provider needs https");
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            is_sealed,
            host,
            port: port.unwrap_or(if is_sealed { 443 } else { 80 }),
            path: format!("{slash}{path}"),
            text: text.to_owned(),
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether two are at one scheme, host and port.
    pub(crate) fn is_at_one(&self, other: &Self) -> bool {
        let place = |url: &Self| (url.is_sealed, url.host.clone(), url.port);
        place(self) == place(other)
    }

    /// As the heading `Host` has it.
    pub(crate) fn authority(&self) -> String {
        https::authority(&self.host, self.port, self.is_sealed)
    }

    /// With more parameters.
    pub(crate) fn with(&self, parameters: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        let mark = if self.text.contains('?') { '&' } else { '?' };
        format!("{}{mark}{}", self.text, query.finish())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Host, without brackets, and port.
fn place_of(place: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            let port = match behind {
                "" => None,
                behind => Some(behind.strip_prefix(':')?),
            };
            (host, port)
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
    if host.is_empty() || host.len() > 253 || !host.bytes().all(is_letter) {
        return None;
    }
    let port = match port {
        Some(digits) => Some(digits.parse().ok().filter(|port| *port > 0)?),
        None => None,
    };
    Some((host.to_ascii_lowercase(), port))
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_https_or_of_this_machine() {
        let url = Url::parse("https://ID.example.com/realms/a?x=1").unwrap();
        assert_eq!((&*url.host, url.port, &*url.path), ("id.example.com", 443, "/realms/a?x=1"));
        assert_eq!(url.with(&[("b", "c d")]), "https://ID.example.com/realms/a?x=1&b=c+d");
        let here = Url::parse("http://127.0.0.1:8080").unwrap();
        assert_eq!((&*here.path, here.authority()), ("/", "127.0.0.1:8080".to_owned()));
        assert_eq!(Url::parse("http://[::1]:80/a").unwrap().authority(), "[::1]");
        assert!(url.is_at_one(&Url::parse("https://id.example.com:443/b").unwrap()));
        assert!(!url.is_at_one(&Url::parse("https://id.example.com:444/b").unwrap()));
        for wrong in [
            "",
            "id.example.com",
            "http://id.example.com",
            "http://10.0.0.1/",
            "file:///etc/passwd",
            "https://",
            "https://a b/",
            "https://anna@id.example.com/",
            "https://id.example.com:0/",
            "https://id.example.com:x/",
            "https://id.example.com/#x",
            "https://[::g]/",
            "https://id.example.com\\@evil/",
            "https://id.example.com/\r\nX: y",
        ] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }
}
