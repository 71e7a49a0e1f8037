//! Values of flags.

use core::ops::RangeInclusive;
use core::time::Duration;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use encryption::{Identities, Recipients, is_credential};
use filters::PacketFilter;
use host::SystemClock;
use query::Query;
use units::{ByteSize, Clock as _, Timestamp};
use zeroize::Zeroizing;

use crate::atlas::{self, AtlasFlags};
use crate::failure::{Usage, WrongQuery, line};
use crate::progress::say;

/// Refuses a disk that does not answer, before it is asked for what no deadline bounds.
pub fn must_answer(path: &Path) -> Result<(), device::Error> {
    match device::open_read(path) {
        Err(error @ (device::Error::Silent { .. } | device::Error::Interrupted)) => Err(error),
        // What else is wrong with it is said by who uses it.
        _ => Ok(()),
    }
}

/// One of a few words, which shells complete, as `read` understands it.
pub fn word<T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = &'static str>,
    read: fn(&str) -> Result<T, String>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words).try_map(move |text| read(&text))
}

/// `127.0.0.1:8420`; names are not resolved.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let refused = "an address has a number and a port, such as 127.0.0.1:8420 or [::1]:8420";
    text.parse().map_err(|_| refused.to_owned())
}

/// `8G`, `256M`, `1.5T`.
pub fn size(text: &str) -> Result<u64, String> {
    text.parse().map(|ByteSize(bytes)| bytes).map_err(|error| error.to_string())
}

/// `300s`, `5m`, `12h`, `180d`.
pub fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let digits = text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let millis = UNITS.iter().find(|(name, _)| *name == unit).and_then(|(_, millis)| {
        let number: u64 = number.parse().ok()?;
        number.checked_mul(*millis)
    });
    match millis {
        Some(0) => Err("it must be more than 0, such as 100ms".to_owned()),
        Some(millis) => Ok(Duration::from_millis(millis)),
        None => Err("write a number with ms, s, m, h or d, such as 300s or 180d".to_owned()),
    }
}

/// A public key as age writes it.
pub fn recipient(text: &str) -> Result<String, String> {
    let text = text.to_owned();
    Recipients::parse(std::slice::from_ref(&text)).map_err(|error| error.to_string())?;
    Ok(text)
}

/// What an encrypted volume is read with.
#[derive(Debug, Args)]
pub struct KeyFlags {
    /// The file with the private key of a recipient, for an encrypted volume: as age-keygen writes
    /// it, also with a passphrase (age -p) or sealed by a TPM (systemd-creds), or of SSH
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

impl KeyFlags {
    /// Whether there is any.
    pub fn is_given(&self) -> bool {
        self.identity.is_some()
    }

    /// The private keys in the file, whose passphrase the terminal is asked for if it has one.
    pub fn identities(&self) -> anyhow::Result<Option<Identities>> {
        let Some(path) = &self.identity else { return Ok(None) };
        let name = page::safe::path(path);
        let of_file = |error: &dyn core::fmt::Display| Usage(format!("--identity {name}: {error}"));
        // It names the file itself.
        let unread = |error: host::Error| Usage(format!("--identity: {}", line(&error.into())));
        let mut content = Zeroizing::new(host::read_key_bytes(path).map_err(unread)?);
        if is_credential(&content) {
            content = host::open_credential(path, &content).map_err(unread)?;
        }
        let ask = || host::ask_passphrase(&format!("Passphrase of {name}: "));
        Ok(Some(Identities::parse(&content, &ask).map_err(|error| of_file(&error))?))
    }
}

/// A list of processors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cpus(pub Vec<usize>);

/// Numbers and ranges, as in `/proc` and cpuset(7).
pub fn cpus(text: &str) -> Result<Cpus, String> {
    let bad = || "write numbers and ranges, such as 2-5,8".to_owned();
    let number = |text: &str| text.parse::<u16>().map(usize::from).map_err(|_| bad());
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = number(first)?..=number(last)?;
        if range.is_empty() {
            return Err(bad());
        }
        cpus.extend(range);
    }
    Ok(Cpus(cpus))
}

/// What `ether host` does not cover.
const STATIONS: &str = "ether host covers sessions without IP (ARP and the like): \
                        stations of IP sessions are not kept";

/// A query, read as of now; what it does not cover is said.
pub fn query(text: &str) -> anyhow::Result<Query> {
    let query = parse(text)?;
    query.needs_atlas().map_or(Ok(query), |field| Err(atlas::missing(field).into()))
}

/// The conditions of a query that leave these times and no others; none for all times.
pub fn bounds(times: &RangeInclusive<Timestamp>) -> Vec<String> {
    let (from, to) = (*times.start(), *times.end());
    let after = (from > Timestamp::MIN).then(|| format!("after {from}"));
    let before = (to < Timestamp::MAX).then(|| format!("before {}", to.plus_nanos(1)));
    after.into_iter().chain(before).collect()
}

/// The same, of whom it may ask about addresses.
pub fn query_with(text: &str, flags: &AtlasFlags) -> anyhow::Result<Query> {
    let query = parse(text)?;
    for field in query.all_needing_atlas() {
        flags.check(field)?;
    }
    let atlas = flags.read(None)?;
    Ok(match atlas {
        Some(atlas) => query.with_atlas(atlas),
        None => query,
    })
}

fn parse(text: &str) -> Result<Query, WrongQuery> {
    let query = Query::parse(text, SystemClock.realtime());
    let query = query.map_err(|error| WrongQuery(error.render(text)))?;
    if query.asks_for_stations() {
        say(STATIONS);
    }
    Ok(query)
}

/// A filter of packets in the words of pcap-filter(7).
pub fn packet_filter(text: &str) -> anyhow::Result<PacketFilter> {
    PacketFilter::of_addresses(text).map_err(|error| match error {
        error @ (filters::Error::Wrong { .. } | filters::Error::TooSlow { .. }) => {
            Usage(error.to_string()).into()
        }
        error => error.into(),
    })
}

/// A decimal number above 0, times `unit`, exactly: a decimal point moves, nothing is rounded.
pub fn scaled(text: &str, unit: u64) -> Result<u64, String> {
    let refused = || "a number above 0, such as 2 or 0.5".to_owned();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || whole.len() + fraction.len() == 0 {
        return Err(refused());
    }
    let digits = u32::try_from(fraction.len()).map_err(|_| refused())?;
    let number: u64 = format!("{whole}{fraction}").parse().map_err(|_| refused())?;
    let divisor = 10_u128.checked_pow(digits).ok_or_else(refused)?;
    let value = u64::try_from(u128::from(number) * u128::from(unit) / divisor);
    value.ok().filter(|&value| value > 0).ok_or_else(refused)
}

/// A decimal number of bits a second, with K, M or G for powers of 1000.
pub fn bits(text: &str) -> Result<u64, String> {
    let refused = || "a number of bits a second above 0, such as 500M or 2.5G".to_owned();
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (text.get(..at), 1_000),
        Some((at, 'M')) => (text.get(..at), 1_000_000),
        Some((at, 'G')) => (text.get(..at), 1_000_000_000),
        _ => (Some(text), 1),
    };
    scaled(number.unwrap_or_default(), unit).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_units_of_a_thousand() {
        assert_eq!(bits("1G"), Ok(1_000_000_000));
        assert_eq!(bits("2.5G"), Ok(2_500_000_000));
        assert_eq!(
            (bits("500M"), bits("64k"), bits("9600")),
            (Ok(500_000_000), Ok(64_000), Ok(9600))
        );
        for text in ["", "G", "0", "0G", "-1M", "1T", "1 G", "1e9"] {
            assert!(bits(text).is_err(), "{text}");
        }
    }

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(cpus("2-5,8"), Ok(Cpus(vec![2, 3, 4, 5, 8])));
        assert_eq!(cpus("0"), Ok(Cpus(vec![0])));
        for text in ["", "a", "1-", "-1", "5-2", "1,", "1 2", "70000"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_have_a_number_and_a_unit() {
        for (text, seconds) in [("300s", 300), ("5m", 300), ("2h", 7200), ("180d", 15_552_000)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "5", "s", "0s", "1.5h", "-1s", "5 m", "99999999999999999999d", "1w"] {
            assert!(duration(text).is_err(), "{text}");
        }
        let nothing = duration("0s").unwrap_err();
        assert!(nothing.contains("more than 0"), "{nothing}");
    }
}
