//! The way back for single addresses.

use core::net::IpAddr;

use anonymise::Anonymiser;
use wire::Address;

use crate::escrow::Escrow;

/// The text is no address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is neither an IP address nor that of a station")]
pub struct NoAddress(pub String);

/// Gives addresses back what they were.
#[derive(Clone, Debug)]
pub struct Reveal {
    pub(crate) back: Anonymiser,
}

impl Reveal {
    /// By an escrow that was opened.
    pub fn new(escrow: &Escrow) -> Self {
        Self { back: Anonymiser::new(&escrow.key).reversed(escrow.stations.clone()) }
    }

    /// The address that this one stands for, as text.
    ///
    /// # Errors
    /// When it is none.
    pub fn address(&mut self, text: &str) -> Result<String, NoAddress> {
        let wrong = || NoAddress(text.chars().take(80).collect());
        let address = match text.trim().parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) => Address::V4(ip),
            Ok(IpAddr::V6(ip)) => Address::V6(ip),
            Err(_) => Address::Mac(station(text.trim()).ok_or_else(wrong)?),
        };
        match self.back.address(address) {
            Address::None => Err(wrong()),
            old => Ok(old.to_string()),
        }
    }
}

/// Six bytes in hex digits, with colons or dashes between them.
fn station(text: &str) -> Option<[u8; 6]> {
    let mut parts = text.split([':', '-']);
    let mut station = [0; 6];
    for byte in &mut station {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(station)
}

#[cfg(test)]
mod tests {
    use anonymise::{Anonymiser, Met};
    use encryption::{Identities, Recipients};
    use zeroize::Zeroizing;

    use super::*;

    const SECRET: &str =
        "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
    const PUBLIC: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
    const OTHER: &str =
        "AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU";

    fn identities(text: &str) -> Identities {
        Identities::parse(text.as_bytes(), &|| None).unwrap()
    }

    #[test]
    fn each_address_comes_back_and_only_for_who_has_the_key() {
        let (key, met) = ([9; 32], Met::default());
        let mut there = Anonymiser::new(&key).noting(met.clone());
        let station = Address::Mac([0, 0x1b, 0x21, 1, 2, 3]);
        let (v4, v6) = ([10, 1, 2, 3], "2001:db8::77".parse().unwrap());
        let old = [station, Address::V4(v4.into()), Address::V6(v6)];
        let new = old.map(|address| there.address(address));
        let escrow = Escrow {
            key: Zeroizing::new(key),
            stations: met.stations(),
            of: "a".to_owned(),
            sha256: String::new(),
        };
        let sealed = escrow.seal(&Recipients::parse(&[PUBLIC.to_owned()]).unwrap()).unwrap();
        assert!(Escrow::open(&sealed, &identities(OTHER)).is_err());
        let mut reveal = Reveal::new(&Escrow::open(&sealed, &identities(SECRET)).unwrap());
        let back = new.map(|address| reveal.address(&address.to_string()).unwrap());
        assert_eq!(back, ["00:1b:21:01:02:03", "10.1.2.3", "2001:db8::77"]);
        for text in ["", "10.0.0", "0:1:2:3:4", "00:1b:21:01:02:03:04", "x"] {
            assert!(reveal.address(text).is_err(), "{text}");
        }
    }
}
