//! What a provider says of somebody, and what that makes here.

use serde_json::{Map, Value};

use crate::error::Wrong;

pub(crate) type Claims = Map<String, Value>;

/// A claim of a shorter path is found by it: `realm_access.roles`.
const STEPS_MAX: usize = 8;
const NAME_CHARS_MAX: usize = 128;
const SUBJECT_BYTES_MAX: usize = 255;

/// A claim with this value gives this role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    pub(crate) claim: String,
    pub(crate) value: String,
    pub(crate) role: String,
}

/// How claims become a name and a role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rules {
    /// The claim that is shown as the name.
    pub(crate) name: String,
    /// The first that fits counts.
    pub(crate) roles: Vec<Rule>,
    /// Of whom none fits; nobody without it.
    pub(crate) default_role: Option<String>,
}

/// Somebody who has logged in at the provider.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// What the provider knows them by, for ever.
    pub subject: String,
    /// How they are shown.
    pub name: String,
    /// The role that they have here.
    pub role: String,
}

impl Rules {
    /// Whether claims say what is needed without asking further.
    pub(crate) fn are_answered_by(&self, claims: &Claims) -> bool {
        let mut wanted = self.roles.iter().map(|rule| &*rule.claim).chain([&*self.name]);
        wanted.all(|claim| find(claims, claim).is_some())
    }

    /// Who it is.
    pub(crate) fn identity(&self, claims: &Claims) -> Result<Identity, Wrong> {
        let subject = subject(claims)?;
        let name = find(claims, &self.name).and_then(Value::as_str).unwrap_or(subject).trim();
        let is_shown = !name.is_empty() && !name.chars().any(char::is_control);
        if !is_shown || name.chars().count() > NAME_CHARS_MAX {
            return Err(Wrong::Person("the provider gives no name that can be shown".to_owned()));
        }
        let fits = |rule: &&Rule| has(find(claims, &rule.claim), &rule.value);
        let role = self.roles.iter().find(fits).map(|rule| &rule.role);
        let role = role.or(self.default_role.as_ref()).ok_or_else(|| {
            let name = page::safe::printable(name);
            Wrong::Person(format!("no rule of the service gives {name} a role"))
        })?;
        let (subject, name) = (subject.to_owned(), name.to_owned());
        Ok(Identity { subject, name, role: role.clone() })
    }
}

/// Who the provider speaks of.
pub(crate) fn subject(claims: &Claims) -> Result<&str, Wrong> {
    let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
    let counts = (1..=SUBJECT_BYTES_MAX).contains(&subject.len()) && subject.is_ascii();
    counts.then_some(subject).ok_or(Wrong::Token("the ID token names nobody"))
}

/// A claim by its name, or by the path to it.
fn find<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    let mut value = claims.get(first)?;
    for step in rest.split('.').take(STEPS_MAX) {
        value = value.get(step)?;
    }
    Some(value)
}

/// Whether a claim is this value, or a list with it.
fn has(claim: Option<&Value>, value: &str) -> bool {
    match claim {
        Some(Value::String(text)) => text == value,
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(value)),
        Some(Value::Bool(is_so)) => is_so.to_string() == value,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules() -> Rules {
        let rule = |claim: &str, value: &str, role: &str| Rule {
            claim: claim.to_owned(),
            value: value.to_owned(),
            role: role.to_owned(),
        };
        Rules {
            name: "preferred_username".to_owned(),
            roles: vec![
                rule("groups", "netops", "analyst"),
                rule("realm_access.roles", "boss", "administrator"),
            ],
            default_role: None,
        }
    }

    fn identity(claims: &Value) -> Result<Identity, Wrong> {
        rules().identity(claims.as_object().unwrap())
    }

    #[test]
    fn the_first_rule_that_fits_gives_the_role() {
        let anna = json!({"sub": "1", "preferred_username": "anna", "groups": ["all", "netops"],
            "realm_access": {"roles": ["boss"]}});
        let anna = identity(&anna).unwrap();
        assert_eq!((&*anna.name, &*anna.role, &*anna.subject), ("anna", "analyst", "1"));
        let bert = json!({"sub": "2", "groups": "netop", "realm_access": {"roles": ["boss"]}});
        let bert = identity(&bert).unwrap();
        assert_eq!((&*bert.name, &*bert.role), ("2", "administrator"));
        for nobody in [
            json!({"sub": "3", "groups": ["netops2"]}),
            json!({"sub": "3", "groups": {"netops": true}}),
            json!({"sub": "3", "realm_access": ["boss"]}),
            json!({"sub": "", "groups": "netops"}),
            json!({"groups": "netops"}),
            json!({"sub": 3, "groups": "netops"}),
            json!({"sub": "x".repeat(256), "groups": "netops"}),
            json!({"sub": "3", "groups": "netops", "preferred_username": "a\u{1b}[2J"}),
            json!({"sub": "3", "groups": "netops", "preferred_username": "x".repeat(129)}),
        ] {
            assert!(identity(&nobody).is_err(), "{nobody}");
        }
    }
}
