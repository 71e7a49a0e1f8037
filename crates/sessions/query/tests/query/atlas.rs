//! Countries and autonomous systems, from a database that a writer of our own makes by the
//! specification of the `MaxMind` DB file format, version 2.0.

use std::sync::Arc;

use query::{Atlas, Field, Query, Reading};

use crate::sessions::{NOW, plain, tls, tuple};

/// The file that `file` makes, for other tests, too.
const FILE: &[u8] = include_bytes!("../data/places.mmdb");

/// A value of the data section.
enum Value {
    Text(&'static str),
    U16(u16),
    U32(u32),
    U64(u64),
    List,
    Map(Vec<(&'static str, Value)>),
}

impl Value {
    fn put(&self, out: &mut Vec<u8>) {
        let control = |kind: u8, size: usize| kind << 5 | u8::try_from(size).unwrap();
        match self {
            Self::Text(text) => {
                // From 29 on, a further byte has what is beyond.
                out.push(control(2, text.len().min(29)));
                out.extend(text.len().checked_sub(29).map(|rest| u8::try_from(rest).unwrap()));
                out.extend(text.as_bytes());
            }
            Self::U16(number) => {
                out.push(control(5, 2));
                out.extend(number.to_be_bytes());
            }
            Self::U32(number) => {
                out.push(control(6, 4));
                out.extend(number.to_be_bytes());
            }
            // Extended types have 0 and, in the next byte, their number less 7.
            Self::U64(number) => {
                out.extend([control(0, 8), 2]);
                out.extend(number.to_be_bytes());
            }
            Self::List => out.extend([control(0, 0), 4]),
            Self::Map(entries) => {
                out.push(control(7, entries.len()));
                for (key, value) in entries {
                    Self::Text(key).put(out);
                    value.put(out);
                }
            }
        }
    }
}

/// Networks as leading bits of an IPv6 address (IPv4 has 96 zeros in front), with what is known of
/// them.
fn networks() -> Vec<(u128, u32, Value)> {
    let country = |code| Value::Map(vec![("iso_code", Value::Text(code))]);
    let full = |code, number, name| {
        Value::Map(vec![
            ("country", country(code)),
            ("autonomous_system_number", Value::U32(number)),
            ("autonomous_system_organization", Value::Text(name)),
        ])
    };
    // As `IPinfo` has them.
    let flat = Value::Map(vec![
        ("country_code", Value::Text("US")),
        ("asn", Value::Text("AS64502")),
        ("as_name", Value::Text("Flat Inc")),
    ]);
    vec![
        (0x0a00_0000, 104, full("DE", 64500, "Example GmbH")),
        (0x0a63_0000, 112, full("FR", 64501, "Exemple SA")),
        (0xc000_0200, 120, flat),
        (0x2001_0db8 << 96, 32, Value::Map(vec![("country", country("NL"))])),
    ]
}

/// The search tree: what is known of the addresses that begin with the bits on the way here.
enum Tree {
    /// Where their value stands in the data section.
    Leaf(Option<usize>),
    Node(Box<[Tree; 2]>),
}

impl Tree {
    fn insert(&mut self, address: u128, bits: u32, at: usize) {
        if bits == 0 {
            *self = Self::Leaf(Some(at));
            return;
        }
        // What is known of the whole is known of both halves.
        if let Self::Leaf(at) = *self {
            *self = Self::Node(Box::new([Self::Leaf(at), Self::Leaf(at)]));
        }
        let Self::Node(halves) = self else { unreachable!("a leaf was divided") };
        let [zero, one] = &mut **halves;
        let half = if address >> 127 == 1 { one } else { zero };
        half.insert(address << 1, bits - 1, at);
    }

    fn count(&self) -> u32 {
        match self {
            Self::Leaf(_) => 0,
            Self::Node(halves) => 1 + halves.iter().map(Self::count).sum::<u32>(),
        }
    }

    /// Nodes in the order of a walk, each two records of 24 bits; `number` is that of this node.
    fn put(&self, number: u32, all: u32, out: &mut Vec<u8>) {
        let Self::Node(halves) = self else { return };
        let [zero, one] = &**halves;
        let numbers = [number + 1, number + 1 + zero.count()];
        for (half, number) in [zero, one].into_iter().zip(numbers) {
            let record = match half {
                Self::Node(_) => number,
                Self::Leaf(None) => all,
                Self::Leaf(Some(at)) => all + 16 + u32::try_from(*at).unwrap(),
            };
            out.extend(record.to_be_bytes().iter().skip(1));
        }
        zero.put(numbers[0], all, out);
        one.put(numbers[1], all, out);
    }
}

/// The tree, sixteen zeros, the data, and the metadata behind its marker.
fn file() -> Vec<u8> {
    let (mut tree, mut data) = (Tree::Leaf(None), Vec::new());
    // Shorter prefixes first: longer ones divide them.
    for (address, bits, value) in networks() {
        tree.insert(address, bits, data.len());
        value.put(&mut data);
    }
    let (count, mut out) = (tree.count(), Vec::new());
    tree.put(0, count, &mut out);
    out.extend([0; 16]);
    out.extend(data);
    out.extend(b"\xab\xcd\xefMaxMind.com");
    let metadata = Value::Map(vec![
        ("binary_format_major_version", Value::U16(2)),
        ("binary_format_minor_version", Value::U16(0)),
        ("build_epoch", Value::U64(1_795_176_000)),
        ("database_type", Value::Text("wirespool-Test")),
        ("description", Value::Map(Vec::new())),
        ("ip_version", Value::U16(6)),
        ("languages", Value::List),
        ("node_count", Value::U32(count)),
        ("record_size", Value::U16(24)),
    ]);
    metadata.put(&mut out);
    out
}

fn atlas() -> Arc<Atlas> {
    let mut atlas = Atlas::default();
    atlas.add(file()).unwrap();
    Arc::new(atlas)
}

#[track_caller]
fn check(text: &str, expect: bool) {
    let query = Query::parse(text, NOW).unwrap();
    assert!(query.needs_atlas().is_some(), "{text}");
    assert!(!query.matches(&tls(), &[]), "{text} without an atlas");
    assert_eq!(query.with_atlas(atlas()).matches(&tls(), &[]), expect, "{text}");
}

#[test]
fn tags_are_those_of_any_row_of_a_session() {
    let mut atlas = Atlas::default();
    for (id, tag) in [("7.0-1", "ET SCAN"), ("7.0-2", "ET POLICY"), ("7.0-2", "ET POLICY")] {
        atlas.tag(id.to_owned(), tag.to_owned());
    }
    let atlas = Arc::new(atlas);
    let ids = ["7.0-0", "7.0-2"].map(str::to_owned);
    for (text, expect) in [
        ("tag = \"et policy\"", true),
        ("tag *SCAN*", false),
        ("has tag", true),
        ("not has tag", false),
        ("tags != *SCAN*", true),
    ] {
        let query = Query::parse(text, NOW).unwrap().with_atlas(Arc::clone(&atlas));
        assert_eq!(query.matches(&tls(), &ids), expect, "{text}");
        assert_eq!(
            query.matches(&tls(), &["7.1-0".to_owned()]),
            text.contains("not ") || text.contains('!')
        );
        // Of one row among others only what it has is known.
        assert!(query.may_match(&tls(), &ids, None) || !expect, "{text}");
    }
    assert_eq!(Query::parse("tag a and country NL", NOW).unwrap().all_needing_atlas().len(), 2);
}

#[test]
fn the_file_is_what_the_writer_makes() {
    assert_eq!(FILE, file());
}

#[test]
fn sessions_are_found_by_country_and_autonomous_system() {
    // From 10.0.0.5 to 192.0.2.80.
    check("country = DE", true);
    check("country de and resp_country US", true);
    check("orig_country US", false);
    check("asn = 64502 and asn = 64500", true);
    check("resp_asn > 64502", false);
    check("asn in {1, 64500}", true);
    check("as_name *gmbh", true);
    check("resp_as_name \"flat inc\"", true);
    check("has orig_as_name", true);
}

#[test]
fn the_longest_prefix_counts_and_what_is_not_known_is_absent() {
    let atlas = atlas();
    let values = |name: &str, orig: &str| {
        let row = plain(tuple(orig, 1, "198.51.100.1", 2, wire::Protocol::UDP));
        let mut values = Vec::new();
        Field::find(name).unwrap().each((&row, &[]), Some(&atlas), |reading| {
            values.push(match reading {
                Reading::Name(name) => name.to_owned(),
                Reading::Number(number) => number.to_string(),
                other => panic!("{other:?}"),
            });
        });
        values
    };
    assert_eq!(values("country", "10.99.1.2"), ["FR"]);
    assert_eq!(values("country", "10.98.1.2"), ["DE"]);
    assert_eq!(values("asn", "10.255.0.0"), ["64500"]);
    assert_eq!(values("country", "2001:db8::1"), ["NL"]);
    assert!(values("asn", "2001:db8::1").is_empty());
    assert!(values("country", "11.0.0.1").is_empty());
}

#[test]
fn what_is_no_database_is_refused() {
    let mut atlas = Atlas::default();
    for bytes in
        [Vec::new(), b"GeoLite".to_vec(), FILE.iter().take(FILE.len() / 2).copied().collect()]
    {
        let error = atlas.add(bytes).unwrap_err().to_string();
        assert!(error.starts_with("not an MMDB file: "), "{error}");
    }
}
