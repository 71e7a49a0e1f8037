//! What was issued: a line for each certificate, in a file that people can read.
//!
//! `SERIAL KIND NAME UNTIL REVOKED`: the serial in hex digits, the kind, the name, and two times in
//! seconds since 1970, of which the second is `-` for one that is not revoked.

use core::fmt::Write as _;

use units::{hex, unhex};

/// What a certificate is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// The service of a sensor.
    Server,
    /// Who asks it.
    Client,
}

impl Kind {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }

    fn read(text: &str) -> Option<Self> {
        [Self::Server, Self::Client].into_iter().find(|kind| kind.name() == text)
    }
}

/// A certificate that was issued.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Issued {
    /// Its serial number.
    pub serial: [u8; 16],
    /// What it is for.
    pub kind: Kind,
    /// Whose it is.
    pub name: String,
    /// It counts until then.
    pub until_s: i64,
    /// When it was revoked.
    pub revoked_s: Option<i64>,
}

impl Issued {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut next = || words.next();
        // Versions before wrote other bytes than those in the certificate.
        let serial = positive(unhex(next()?)?);
        let kind = Kind::read(next()?)?;
        let name = next()?.to_owned();
        let until_s = next()?.parse().ok()?;
        let revoked_s = match next()? {
            "-" => None,
            text => Some(text.parse().ok()?),
        };
        next().is_none().then_some(Self { serial, kind, name, until_s, revoked_s })
    }

    /// It counts now.
    pub fn counts(&self, now_s: i64) -> bool {
        self.revoked_s.is_none() && self.until_s > now_s
    }
}

/// All that was issued.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// The oldest first.
    pub issued: Vec<Issued>,
}

impl Ledger {
    /// Reads the file; an error is the number of the first line that is none.
    pub(crate) fn read(text: &str) -> Result<Self, usize> {
        let lines = text.lines().enumerate();
        let issued = lines.map(|(at, line)| Issued::read(line).ok_or(at + 1));
        Ok(Self { issued: issued.collect::<Result<_, _>>()? })
    }

    /// Whether the newest that was issued to this name is revoked.
    pub(crate) fn is_revoked(&self, kind: Kind, name: &str) -> bool {
        let newest = self.issued.iter().rev().find(|it| it.kind == kind && it.name == name);
        newest.is_some_and(|it| it.revoked_s.is_some())
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for Issued { serial, kind, name, until_s, revoked_s } in &self.issued {
            let revoked = revoked_s.map_or_else(|| "-".to_owned(), |at| at.to_string());
            let (serial, kind) = (hex(serial), kind.name());
            // Writing to a string does not fail.
            let _infallible = writeln!(text, "{serial} {kind} {name} {until_s} {revoked}");
        }
        text
    }

    /// Revokes what somebody has that counts still; how many that are, or `None` where nobody has
    /// this name.
    pub(crate) fn revoke(&mut self, name: &str, now_s: i64) -> Option<usize> {
        let mut named = self.issued.iter_mut().filter(|issued| issued.name == name).peekable();
        named.peek()?;
        let counting = named.filter(|issued| issued.counts(now_s));
        Some(counting.map(|issued| issued.revoked_s = Some(now_s)).count())
    }
}

/// A serial as certificates have it: a positive number of all bytes (RFC 5280, 4.1.2.2).
pub(crate) fn positive(mut serial: [u8; 16]) -> [u8; 16] {
    let [first, ..] = &mut serial;
    *first = (*first & 0x7f) | 0x40;
    serial
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_issued_is_read_as_it_was_written() {
        let issued = |name: &str, kind, until_s| Issued {
            serial: [0x47; 16],
            kind,
            name: name.to_owned(),
            until_s,
            revoked_s: None,
        };
        let mut ledger = Ledger {
            issued: vec![issued("a", Kind::Server, 50), issued("b.c-1", Kind::Client, 70)],
        };
        assert_eq!(ledger.revoke("b.c-1", 60), Some(1));
        assert_eq!(ledger.revoke("b.c-1", 61), Some(0));
        assert_eq!(ledger.revoke("a", 60), Some(0), "it is over already");
        assert_eq!(ledger.revoke("c", 60), None);
        assert_eq!(Ledger::read(&ledger.text()), Ok(ledger));
        assert_eq!(Ledger::read("0 server a 1 -\n"), Err(1));
        let line = format!("{} server a 1 -", "00".repeat(16));
        assert_eq!(Ledger::read(&format!("{line}\n{line} x\n")), Err(2));
    }
}
