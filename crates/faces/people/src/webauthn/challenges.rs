//! What keys were asked to sign: each counts once, for its person, and not for long.

use std::collections::BTreeMap;

use units::NANOS_PER_SECOND;

use super::party::to_text;

/// A person finds the key within this.
const LASTS_NS: i64 = 300 * NANOS_PER_SECOND;
/// Pages that one person has open.
const OF_PERSON_MAX: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Challenge {
    bytes: [u8; 32],
    until_ns: i64,
}

/// What was asked and not answered, by person.
#[derive(Debug, Default)]
pub struct Challenges(BTreeMap<String, Vec<Challenge>>);

impl Challenges {
    /// Asks a person's key to sign these random bytes; their text form. Of more than four that are
    /// not answered the oldest is over.
    pub fn begin(&mut self, person: &str, random: [u8; 32], now_ns: i64) -> String {
        self.0.retain(|_, asked| {
            asked.retain(|challenge| now_ns < challenge.until_ns);
            !asked.is_empty()
        });
        let asked = self.0.entry(person.to_owned()).or_default();
        let over = asked.len().saturating_sub(OF_PERSON_MAX.saturating_sub(1));
        asked.drain(..over);
        asked.push(Challenge { bytes: random, until_ns: now_ns.saturating_add(LASTS_NS) });
        to_text(&random)
    }

    /// Uses up what a key has signed. False where the person was not asked that.
    pub fn take(&mut self, person: &str, signed: &[u8], now_ns: i64) -> bool {
        let Some(asked) = self.0.get_mut(person) else { return false };
        let found = asked.iter().position(|challenge| challenge.bytes == signed);
        let taken = found.map(|at| asked.remove(at));
        taken.is_some_and(|challenge| now_ns < challenge.until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_counts_once_for_its_person_and_five_minutes() {
        let mut challenges = Challenges::default();
        assert_eq!(challenges.begin("anna", [0; 32], 0), "A".repeat(43));
        assert!(!challenges.take("bert", &[0; 32], 1) && !challenges.take("anna", &[1; 32], 1));
        assert!(!challenges.take("anna", &[0; 31], 1));
        assert!(challenges.take("anna", &[0; 32], 1) && !challenges.take("anna", &[0; 32], 1));
        challenges.begin("anna", [2; 32], 0);
        assert!(!challenges.take("anna", &[2; 32], LASTS_NS));
        for of in 3..8 {
            challenges.begin("anna", [of; 32], 0);
        }
        assert!(!challenges.take("anna", &[3; 32], 1), "four wait");
        assert!(challenges.take("anna", &[4; 32], 1));
        challenges.begin("bert", [9; 32], LASTS_NS);
        assert_eq!(challenges.0.len(), 1);
    }
}
