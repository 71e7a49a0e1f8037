//! What others know of addresses and sessions: countries and autonomous systems, from databases of
//! the user's in the format of `MaxMind` DB (MMDB, version 2.0), and tags, by session.

use core::fmt;
use core::net::IpAddr;
use std::collections::BTreeMap;

use maxminddb::{LookupResult, PathElement, Reader};
use wire::Address;

/// What databases know about addresses: the first one that knows it. Names of values are those of
/// `MaxMind`, DB-IP and `IPinfo`.
#[derive(Default)]
pub struct Atlas {
    databases: Vec<Reader<Vec<u8>>>,
    /// By the id of the session.
    tags: BTreeMap<String, Vec<String>>,
}

/// The bytes are no database.
#[derive(Debug, thiserror::Error)]
#[error("not an MMDB file: {0}")]
pub struct AtlasError(#[source] maxminddb::MaxMindDbError);

/// Where a value may stand in the entry of a network.
type Places = &'static [Place];
type Place = &'static [PathElement<'static>];
type Entry<'a> = LookupResult<'a, Vec<u8>>;

const COUNTRY: Places = &[
    &[PathElement::Key("country"), PathElement::Key("iso_code")],
    &[PathElement::Key("country_code")],
    &[PathElement::Key("country")],
];
const NUMBER: Places = &[&[PathElement::Key("autonomous_system_number")]];
/// `AS64500`.
const NUMBER_AS_TEXT: Places = &[&[PathElement::Key("asn")]];
const NAME: Places =
    &[&[PathElement::Key("autonomous_system_organization")], &[PathElement::Key("as_name")]];

impl Atlas {
    /// Adds a database, given as the bytes of its file.
    pub fn add(&mut self, bytes: Vec<u8>) -> Result<(), AtlasError> {
        self.databases.push(Reader::from_source(bytes).map_err(AtlasError)?);
        Ok(())
    }

    /// Adds a tag of the session with this id.
    pub fn tag(&mut self, session_id: String, tag: String) {
        let tags = self.tags.entry(session_id).or_default();
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }

    /// The tags of a session, given the ids of its rows.
    pub(crate) fn tags<'a>(&'a self, ids: &'a [String]) -> impl Iterator<Item = &'a str> {
        ids.iter().filter_map(|id| self.tags.get(id)).flatten().map(String::as_str)
    }

    /// ISO 3166-1 code of the country.
    pub(crate) fn country(&self, address: Address) -> Option<&str> {
        self.first(address, COUNTRY, text)
    }

    /// Number of the autonomous system.
    pub(crate) fn as_number(&self, address: Address) -> Option<u32> {
        self.first(address, NUMBER, number).or_else(|| {
            let text = self.first(address, NUMBER_AS_TEXT, text)?;
            text.strip_prefix("AS").unwrap_or(text).parse().ok()
        })
    }

    /// Name of the autonomous system.
    pub(crate) fn as_name(&self, address: Address) -> Option<&str> {
        self.first(address, NAME, text)
    }

    /// The first value there is. What is of another type, or damaged, says nothing.
    fn first<'a, T>(
        &'a self,
        address: Address,
        places: Places,
        read: fn(&Entry<'a>, Place) -> Option<T>,
    ) -> Option<T> {
        let address = match address {
            Address::V4(ip) => IpAddr::V4(ip),
            Address::V6(ip) => IpAddr::V6(ip),
            Address::Mac(_) | Address::None => return None,
        };
        self.databases.iter().find_map(|database| {
            let entry = database.lookup(address).ok()?;
            places.iter().find_map(|place| read(&entry, place))
        })
    }
}

fn text<'a>(entry: &Entry<'a>, place: Place) -> Option<&'a str> {
    entry.decode_path(place).ok().flatten()
}

fn number(entry: &Entry<'_>, place: Place) -> Option<u32> {
    entry.decode_path(place).ok().flatten()
}

/// The kinds of its databases.
impl fmt::Debug for Atlas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.databases.iter().map(|database| &database.metadata().database_type);
        f.debug_list().entries(kinds).finish()
    }
}
