//! Who asks or approves.

use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a credential is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartyKind {
    /// A token.
    Token,
    /// A certificate of a client.
    Certificate,
    /// A person of the service.
    Person,
    /// Somebody who has logged in at the identity provider.
    Provider,
}

impl PartyKind {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Certificate => "certificate",
            Self::Person => "person",
            Self::Provider => "provider",
        }
    }
}

/// A credential that asks or approves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Party {
    /// What it is.
    pub kind: PartyKind,
    /// Its name.
    pub name: String,
    /// What tells it from an earlier one of its name; empty where there is no such thing.
    pub mark: String,
}

impl Party {
    /// Whether both may be one person: the same credential, or two of one name.
    pub fn may_be(&self, other: &Self) -> bool {
        let is_marked = self.kind == other.kind && !self.mark.is_empty();
        let has_name = self.name.trim().to_lowercase() == other.name.trim().to_lowercase();
        // When an account was made tells it from others of its name only.
        let is_one = is_marked && self.kind != PartyKind::Person && self.mark == other.mark;
        is_one || has_name
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.kind.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(kind: PartyKind, name: &str, mark: &str) -> Party {
        Party { kind, name: name.to_owned(), mark: mark.to_owned() }
    }

    #[test]
    fn one_name_is_one_person_whatever_it_shows() {
        use PartyKind::{Certificate, Person, Provider, Token};
        let anna = party(Token, "anna", "1");
        for other in [
            party(Token, "anna", "1"),
            party(Token, "anna", "2"),
            party(Person, "Anna", "2026"),
            party(Certificate, "ANNA", ""),
            party(Provider, " anna", "7"),
            party(Token, "renamed", "1"),
        ] {
            assert!(anna.may_be(&other) && other.may_be(&anna), "{other}");
        }
        for other in [party(Token, "bert", "2"), party(Person, "bert", "1")] {
            assert!(!anna.may_be(&other) && !other.may_be(&anna), "{other}");
        }
        // A name at a provider changes, and who it is does not.
        assert!(party(Provider, "a", "7").may_be(&party(Provider, "b", "7")));
        // Two accounts of one moment, two certificates.
        assert!(!party(Person, "a", "2026").may_be(&party(Person, "b", "2026")));
        assert!(!party(Certificate, "a", "").may_be(&party(Certificate, "b", "")));
    }
}
