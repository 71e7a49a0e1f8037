//! Accounts, and the one text that holds them.

use interface::Scope;
use serde::{Deserialize, Serialize};
use units::hex;

use crate::Error;
use crate::name::is_name;
use crate::password::Verifier;
use crate::role::Roles;
use crate::second_factor::{RecoveryCodes, SecondFactor, Used};
use crate::webauthn::Key;

const VERSION: u32 = 1;
const PEOPLE_MAX: usize = 1000;

/// An account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    name: String,
    role: String,
    /// PHC string of Argon2id.
    password: String,
    /// Somebody else has chosen the password: until it is changed nothing else is permitted.
    must_change: bool,
    is_disabled: bool,
    /// Random, and another one whenever sessions have to end.
    stamp: String,
    /// When it was made, in RFC 3339.
    since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    second_factor: Option<SecondFactor>,
}

impl core::fmt::Debug for Person {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Person {{ name: {:?}, role: {:?} }}", self.name, self.role)
    }
}

impl Person {
    /// The name, by which they log in.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the role.
    pub fn role(&self) -> &str {
        &self.role
    }

    /// Hash of the password.
    pub fn verifier(&self) -> Verifier {
        Verifier(self.password.clone())
    }

    /// The password has to be changed before anything else.
    pub fn must_change(&self) -> bool {
        self.must_change
    }

    /// May not log in.
    pub fn is_disabled(&self) -> bool {
        self.is_disabled
    }

    /// Sessions with another stamp are over.
    pub fn stamp(&self) -> &str {
        &self.stamp
    }

    /// When the account was made, in RFC 3339.
    pub fn since(&self) -> &str {
        &self.since
    }

    /// The second factor, where it is set up.
    pub fn second_factor(&self) -> Option<&SecondFactor> {
        self.second_factor.as_ref()
    }

    fn may_manage(&self, roles: &Roles) -> bool {
        let role = roles.find(&self.role);
        !self.is_disabled && role.is_some_and(|role| role.scopes.contains(&Scope::Admin))
    }
}

/// All accounts, by name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct People {
    version: u32,
    people: Vec<Person>,
}

impl Default for People {
    fn default() -> Self {
        Self { version: VERSION, people: Vec::new() }
    }
}

impl People {
    /// Reads the text of a file. An empty one has nobody.
    ///
    /// # Errors
    /// When anything in it is not as it was written: half of a file lets nobody in.
    pub fn read(text: &str) -> Result<Self, Error> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let read: Self =
            serde_json::from_str(text).map_err(|error| Error::WrongLine { line: error.line() })?;
        if read.version != VERSION {
            return Err(Error::WrongFile("its version is another one"));
        }
        let are_ordered = read.people.is_sorted_by(|one, other| one.name < other.name);
        if !are_ordered || read.people.iter().any(|person| !is_name(&person.name)) {
            return Err(Error::WrongFile("a name is twice, out of order, or none"));
        }
        if read.people.iter().any(|person| Verifier::read(&person.password).is_none()) {
            return Err(Error::WrongFile("a password is no hash of Argon2id within bounds"));
        }
        Ok(read)
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        page::safe::json_pretty(self)
    }

    /// All of them, by name.
    pub fn all(&self) -> &[Person] {
        &self.people
    }

    /// The person of this name.
    pub fn find(&self, name: &str) -> Option<&Person> {
        self.people.iter().find(|person| person.name == name)
    }

    fn change(&mut self, name: &str) -> Result<&mut Person, Error> {
        self.people.iter_mut().find(|person| person.name == name).ok_or(Error::NoPerson)
    }

    /// With another stamp, which ends all sessions of the person.
    fn change_stamped(&mut self, name: &str, stamp: [u8; 16]) -> Result<&mut Person, Error> {
        let person = self.change(name)?;
        person.stamp = hex(&stamp);
        Ok(person)
    }

    /// Whether anybody can manage people.
    pub fn has_administrator(&self, roles: &Roles) -> bool {
        self.people.iter().any(|person| person.may_manage(roles))
    }

    /// Adds a person, with a stamp from random bytes and the time in RFC 3339.
    ///
    /// # Errors
    /// When the name is none or taken, or there are too many.
    pub fn add(
        &mut self,
        (name, role): (&str, &str),
        (password, must_change): (&Verifier, bool),
        (stamp, since): ([u8; 16], String),
    ) -> Result<(), Error> {
        if !is_name(name) {
            return Err(Error::WrongName);
        }
        if self.people.len() >= PEOPLE_MAX {
            return Err(Error::TooMany);
        }
        let place = self.people.partition_point(|person| *person.name < *name);
        if self.people.get(place).is_some_and(|person| person.name == name) {
            return Err(Error::NameTaken);
        }
        let person = Person {
            name: name.to_owned(),
            role: role.to_owned(),
            password: password.0.clone(),
            must_change,
            is_disabled: false,
            stamp: hex(&stamp),
            since,
            second_factor: None,
        };
        self.people.insert(place, person);
        Ok(())
    }

    /// Sets the password, which ends all sessions of the person.
    ///
    /// # Errors
    /// When there is none of this name, here and below.
    pub fn set_password(
        &mut self,
        name: &str,
        (password, must_change): (&Verifier, bool),
        stamp: [u8; 16],
    ) -> Result<(), Error> {
        let person = self.change_stamped(name, stamp)?;
        person.password.clone_from(&password.0);
        person.must_change = must_change;
        Ok(())
    }

    /// Sets the role, which counts from the next request on.
    pub fn set_role(&mut self, name: &str, role: &str) -> Result<(), Error> {
        role.clone_into(&mut self.change(name)?.role);
        Ok(())
    }

    /// Keeps a person from logging in and ends their sessions, or lets them in again.
    pub fn set_disabled(
        &mut self,
        name: &str,
        is_disabled: bool,
        stamp: [u8; 16],
    ) -> Result<(), Error> {
        self.change_stamped(name, stamp)?.is_disabled = is_disabled;
        Ok(())
    }

    /// Sets up a second factor, or takes it away, which ends all sessions of the person.
    pub fn set_second_factor(
        &mut self,
        name: &str,
        factor: Option<SecondFactor>,
        stamp: [u8; 16],
    ) -> Result<(), Error> {
        self.change_stamped(name, stamp)?.second_factor = factor;
        Ok(())
    }

    /// Sets up an authenticator, which ends all sessions of the person; keys stay.
    pub fn set_authenticator(
        &mut self,
        name: &str,
        factor: SecondFactor,
        stamp: [u8; 16],
    ) -> Result<(), Error> {
        let person = self.change_stamped(name, stamp)?;
        person.second_factor.get_or_insert_default().with_authenticator(factor);
        Ok(())
    }

    /// Takes the authenticator away, which ends all sessions of the person; keys stay.
    pub fn end_authenticator(&mut self, name: &str, stamp: [u8; 16]) -> Result<(), Error> {
        let factor = &mut self.change_stamped(name, stamp)?.second_factor;
        factor.iter_mut().for_each(SecondFactor::end_authenticator);
        factor.take_if(|factor| !factor.counts());
        Ok(())
    }

    /// Adds a key, which ends all sessions of the person. It is the first factor, and the codes
    /// count: true.
    ///
    /// # Errors
    /// When somebody has this key, or the person has as many as there may be.
    pub fn add_key(
        &mut self,
        name: &str,
        (key, codes): (Key, &RecoveryCodes),
        stamp: [u8; 16],
    ) -> Result<bool, Error> {
        let factors = self.people.iter().filter_map(|person| person.second_factor.as_ref());
        if factors.flat_map(SecondFactor::keys).any(|other| other.id() == key.id()) {
            return Err(Error::KeyTaken);
        }
        let mut factor = self.change(name)?.second_factor.clone().unwrap_or_default();
        let is_first = !factor.counts() || factor.recovery_left() == 0;
        factor.add_key(key, codes)?;
        self.change_stamped(name, stamp)?.second_factor = Some(factor);
        Ok(is_first)
    }

    /// Takes a key away, which ends all sessions of the person.
    ///
    /// # Errors
    /// When the person has no such key.
    pub fn remove_key(&mut self, name: &str, id: &str, stamp: [u8; 16]) -> Result<(), Error> {
        let factor = &mut self.change(name)?.second_factor;
        factor.as_mut().ok_or(Error::NoKey)?.remove_key(id)?;
        factor.take_if(|factor| !factor.counts());
        self.change_stamped(name, stamp)?;
        Ok(())
    }

    /// Uses a code or a key up. False where it was used meanwhile.
    pub fn use_code(&mut self, name: &str, used: &Used) -> Result<bool, Error> {
        let factor = self.change(name)?.second_factor.as_mut();
        Ok(factor.is_some_and(|factor| factor.take(used)))
    }

    /// Takes an account out.
    pub fn remove(&mut self, name: &str) -> Result<(), Error> {
        self.change(name)?;
        self.people.retain(|person| person.name != name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::password::Password;
    use crate::second_factor::Enrolment;
    use units::Timestamp;

    fn verifier() -> Verifier {
        Password::new("correct horse battery").unwrap().hash([1; 16]).unwrap()
    }

    fn people(names: &[(&str, &str)]) -> People {
        let (mut people, verifier) = (People::default(), verifier());
        for who in names {
            people.add(*who, (&verifier, false), ([0; 16], "t".to_owned())).unwrap();
        }
        people
    }

    #[test]
    fn what_is_written_is_read_again_and_half_of_it_is_not() {
        let mut people = people(&[("bert", "viewer"), ("anna", "administrator")]);
        let now = Timestamp(1_700_000_000_000_000_000);
        let enrolment = Enrolment::new([9; 20]);
        let code = (0..1_000_000)
            .map(|code| format!("{code:06}"))
            .find(|code| enrolment.confirm(code, now, &[0; 100]).is_some());
        let (factor, _) = enrolment.confirm(&code.unwrap(), now, &[0; 100]).unwrap();
        people.set_second_factor("bert", Some(factor), [1; 16]).unwrap();
        let text = people.to_text();
        assert_eq!(People::read(&text).unwrap(), people);
        assert!(!text.contains("correct horse"));
        assert_eq!(People::read("").unwrap(), People::default());
        for end in 1..text.trim_end().len() {
            assert!(People::read(&text[..end]).is_err(), "{end} bytes were taken");
        }
        for (from, to) in [
            ("\"version\": 1", "\"version\": 2"),
            ("\"bert\"", "\"anna\""),
            ("\"bert\"", "\"b t\""),
            ("argon2id", "argon2i"),
            ("\"is_disabled\"", "\"is_enabled\""),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            assert!(People::read(&text.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_name_is_taken_once_and_what_ends_sessions_changes_the_stamp() {
        let mut people = people(&[("anna", "administrator")]);
        let add = |people: &mut People, name: &str| {
            people.add((name, "viewer"), (&verifier(), true), ([0; 16], String::new()))
        };
        assert_eq!(add(&mut people, "anna"), Err(Error::NameTaken));
        assert_eq!(add(&mut people, "a b"), Err(Error::WrongName));
        assert_eq!(people.set_role("bert", "viewer"), Err(Error::NoPerson));
        let stamp = |people: &People| people.find("anna").unwrap().stamp().to_owned();
        let before = stamp(&people);
        people.set_role("anna", "viewer").unwrap();
        assert_eq!(stamp(&people), before);
        people.set_password("anna", (&verifier(), true), [1; 16]).unwrap();
        let changed = stamp(&people);
        people.set_disabled("anna", true, [2; 16]).unwrap();
        assert!(changed != before && stamp(&people) != changed);
        people.remove("anna").unwrap();
        assert!(people.all().is_empty());
    }

    #[test]
    fn an_administrator_can_log_in_and_has_the_scope() {
        let roles = Roles::new(&["boss=admin".parse().unwrap()]);
        let mut people = people(&[("anna", "administrator"), ("bert", "viewer"), ("carl", "gone")]);
        assert!(people.has_administrator(&roles));
        people.set_disabled("anna", true, [0; 16]).unwrap();
        assert!(!people.has_administrator(&roles));
        people.set_role("bert", "boss").unwrap();
        assert!(people.has_administrator(&roles));
    }
}
