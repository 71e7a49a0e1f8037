//! Protocols in BER (X.690): SNMP (RFC 3416, 3412), LDAP (RFC 4511), Kerberos (RFC 4120).

use super::payload::{Carrier, Payload};

/// Tag, and where its contents begin and end; the end may lie beyond what is there.
struct Element {
    tag: u8,
    begin: usize,
    end: usize,
}

fn element(payload: &Payload<'_>, at: usize) -> Option<Element> {
    let tag = payload.u8(at)?;
    let first = payload.u8(at + 1)?;
    let (begin, len) = match first {
        0..=0x7f => (at + 2, usize::from(first)),
        0x81..=0x84 => {
            let count = usize::from(first & 7);
            let bytes = payload.from(at + 2).get(..count)?;
            let len = bytes.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
            (at + 2 + count, len)
        }
        _ => return None,
    };
    Some(Element { tag, begin, end: begin.checked_add(len)? })
}

/// A small number.
fn integer(payload: &Payload<'_>, at: usize) -> Option<(usize, u32)> {
    let element = element(payload, at)?;
    let bytes = payload.from(element.begin).get(..element.end - element.begin)?;
    if element.tag != 2 || bytes.is_empty() || bytes.len() > 5 {
        return None;
    }
    Some((element.end, bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))))
}

/// Whether an element fills the payload; in a stream it may go on, or another may follow.
fn fills(payload: &Payload<'_>, outer: &Element) -> bool {
    outer.end == payload.len || payload.carrier == Carrier::Tcp && outer.end >= 7
}

pub(super) fn snmp(payload: &Payload<'_>) -> Option<bool> {
    let outer = element(payload, 0)?;
    let (at, version) = integer(payload, outer.begin)?;
    if outer.tag != 0x30 || outer.end != payload.len {
        return Some(false);
    }
    let next = element(payload, at)?;
    match version {
        0 | 1 => {
            let request = element(payload, next.end)?;
            Some(next.tag == 4 && (0xa0..=0xa8).contains(&request.tag) && request.end == outer.end)
        }
        // The global header, security parameters and a scoped request follow.
        3 => {
            let (_, _id) = integer(payload, next.begin)?;
            let parameters = element(payload, next.end)?;
            Some(next.tag == 0x30 && parameters.tag == 4)
        }
        _ => Some(false),
    }
}

/// What can be said of an LDAP message.
#[derive(PartialEq, Eq)]
enum Ldap {
    Certain,
    Likely,
}

fn ldap(payload: &Payload<'_>) -> Option<Ldap> {
    let outer = element(payload, 0)?;
    let (at, _id) = integer(payload, outer.begin)?;
    if outer.tag != 0x30 || !fills(payload, &outer) {
        return None;
    }
    let operation = element(payload, at)?;
    let is_inside = operation.end <= outer.end;
    let certain = match operation.tag {
        // A bind with version 2 or 3, and the name after it.
        0x60 => {
            let (at, version) = integer(payload, operation.begin)?;
            matches!(version, 2 | 3) && payload.u8(at)? == 4
        }
        // Results: a code of one byte, and a name.
        0x61 | 0x65 | 0x67 | 0x69 | 0x6b | 0x6d | 0x6f | 0x78 => {
            payload.has(operation.begin, &[0x0a, 1]) && payload.u8(operation.begin + 3)? == 4
        }
        // A search: its base, scope and treatment of aliases.
        0x63 => {
            let base = element(payload, operation.begin)?;
            base.tag == 4
                && payload.has(base.end, &[0x0a, 1])
                && payload.u8(base.end + 2)? <= 3
                && payload.has(base.end + 3, &[0x0a, 1])
        }
        // An entry, a request to change, one of an extension by its number.
        0x64 | 0x66 | 0x68 | 0x6c | 0x6e => payload.u8(operation.begin)? == 4,
        0x77 => payload.u8(operation.begin)? == 0x80 && payload.has(operation.begin + 2, b"1."),
        0x42 => return (is_inside && operation.end == operation.begin).then_some(Ldap::Likely),
        0x4a | 0x50 | 0x73 => return is_inside.then_some(Ldap::Likely),
        _ => return None,
    };
    (certain && is_inside).then_some(Ldap::Certain)
}

pub(super) fn ldap_certain(payload: &Payload<'_>) -> Option<bool> {
    Some(ldap(payload)? == Ldap::Certain)
}

pub(super) fn ldap_likely(payload: &Payload<'_>) -> Option<bool> {
    ldap(payload).map(|_| true)
}

/// A message of an application tag, its version and its type, which the tag repeats.
fn kerberos_at(payload: &Payload<'_>, at: usize) -> Option<bool> {
    let outer = element(payload, at)?;
    let inner = element(payload, outer.begin)?;
    if !matches!(outer.tag, 0x6a..=0x6f | 0x74..=0x76 | 0x7e) || inner.tag != 0x30 {
        return Some(false);
    }
    let kind = outer.tag & 0x1f;
    let start = payload.array::<10>(inner.begin)?;
    Some(match start {
        [0xa0 | 0xa1, 3, 2, 1, 5, 0xa1 | 0xa2, 3, 2, 1, told] => told == kind,
        _ => false,
    })
}

pub(super) fn kerberos(payload: &Payload<'_>) -> Option<bool> {
    kerberos_at(payload, 0)
}

pub(super) fn kerberos_over_tcp(payload: &Payload<'_>) -> Option<bool> {
    let len = payload.u32(0)?;
    Some(kerberos_at(payload, 4)? && payload.reaches_end(len, 4))
}
