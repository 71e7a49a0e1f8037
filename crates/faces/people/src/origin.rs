//! Where browsers find the page of a service.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;

/// Scheme, host and port of the page, as browsers write an origin: the address that people open,
/// which behind a proxy is not the one that the service listens at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    text: String,
    host: String,
}

impl Origin {
    /// The domain that keys are made for (the RP ID of Web Authentication); none of an address in
    /// numbers, for which browsers have no keys.
    pub fn domain(&self) -> Option<&str> {
        let is_number = self.host.starts_with('[') || self.host.parse::<IpAddr>().is_ok();
        (!is_number).then_some(&*self.host)
    }

    /// As browsers write it, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Origin {
    type Err = &'static str;

    /// Reads `https://HOST[:PORT]`; `http` for this machine alone.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "write https://HOST[:PORT], as browsers open the page";
        let text = text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase();
        let (scheme, rest) = text.split_once("://").ok_or(FORM)?;
        let usual_port = match scheme {
            "https" => 443,
            "http" => 80,
            _ => return Err(FORM),
        };
        let (host, port) = host_and_port(rest).ok_or(FORM)?;
        if scheme == "http" && !is_this_machine(host) {
            return Err("http is for this machine alone: beyond it the page needs https");
        }
        let port = port.filter(|port| *port != usual_port);
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        Ok(Self { text: format!("{scheme}://{host}{port}"), host: host.to_owned() })
    }
}

fn host_and_port(rest: &str) -> Option<(&str, Option<u16>)> {
    let colon = match rest.rfind(']') {
        Some(end) => rest.get(end..)?.find(':').map(|at| end.saturating_add(at)),
        None => rest.find(':'),
    };
    let (host, port) = match colon {
        Some(at) => (rest.get(..at)?, Some(rest.get(at.checked_add(1)?..)?)),
        None => (rest, None),
    };
    let port = port.map(|digits| digits.parse().ok().filter(|port| *port > 0));
    let port = match port {
        Some(None) => return None,
        other => other.flatten(),
    };
    is_host(host).then_some((host, port))
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    let is_label = |label: &str| {
        let letters = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        letters && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(is_label)
}

/// Whether a host of a URL is this machine.
pub fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_as_browsers_write_it() {
        for (given, text, domain) in [
            ("https://recorder.example", "https://recorder.example", Some("recorder.example")),
            ("https://Recorder.Example/", "https://recorder.example", Some("recorder.example")),
            ("https://recorder.example:443", "https://recorder.example", Some("recorder.example")),
            ("https://r.example:8420", "https://r.example:8420", Some("r.example")),
            ("http://localhost:8420", "http://localhost:8420", Some("localhost")),
            ("http://127.0.0.1:80", "http://127.0.0.1", None),
            ("https://[2001:db8::1]:8420", "https://[2001:db8::1]:8420", None),
        ] {
            let origin: Origin = given.parse().unwrap();
            assert_eq!((origin.as_str(), origin.domain()), (text, domain), "{given}");
        }
        for wrong in [
            "",
            "recorder.example",
            "http://recorder.example",
            "http://10.0.0.1",
            "ftp://localhost",
            "https://",
            "https://a b",
            "https://recorder.example/page",
            "https://anna@recorder.example",
            "https://recorder.example:0",
            "https://recorder.example:99999",
            "https://recorder.example:",
            "https://-x.example",
            "https://recorder..example",
            "https://recorder.example?x",
            "https://[::g]",
        ] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong}");
        }
    }
}
