//! The file of people: read, changed by one process at a time, and managed from the command line.

use core::fmt::Write as _;
use std::path::{Path, PathBuf};

use host::SystemClock;
use page::text::plural;
use units::{Clock as _, number};

use crate::Error;
use crate::account::People;
use crate::name::is_name;
use crate::password::{Password, Verifier, generated};

/// A thousand accounts, each with second factor and codes, have half of it.
const BYTES_MAX: u64 = 4 << 20;

/// Why the file of people is not read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// It is no file of people.
    #[error("{}: {source}", page::safe::path(path))]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Error,
    },
    /// An account is not made or changed.
    #[error(transparent)]
    Refused(Error),
}

/// What is done with an account from the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Lists all.
    List,
    /// Makes one, with this role.
    Add(String),
    /// Sets the password.
    Password,
    /// Sets the role.
    Role(String),
    /// Keeps the person from logging in.
    Disable,
    /// Lets the person in again.
    Enable,
    /// Takes the second factor away.
    ResetSecondFactor,
    /// Takes the account out.
    Remove,
}

impl Order {
    /// Their words.
    pub const WORDS: [&str; 8] =
        ["add", "list", "role", "disable", "enable", "password", "reset-second-factor", "remove"];

    /// The order of this word.
    ///
    /// # Errors
    /// When it is none, or needs a role.
    pub fn of(word: &str, role: Option<&str>) -> Result<Self, &'static str> {
        let role = || role.map(str::to_owned).ok_or("--role is missing");
        Ok(match word {
            "add" => Self::Add(role()?),
            "list" => Self::List,
            "role" => Self::Role(role()?),
            "disable" => Self::Disable,
            "enable" => Self::Enable,
            "password" => Self::Password,
            "reset-second-factor" => Self::ResetSecondFactor,
            "remove" => Self::Remove,
            _ => return Err("there is no such order"),
        })
    }
}

/// Who there is; nobody where there is no file.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn read_file(path: &Path) -> Result<People, FileError> {
    let text = match host::target(path)? {
        host::Target::Absent => String::new(),
        _ => host::read_private(path, BYTES_MAX)?,
    };
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<People, FileError> {
    People::read(text).map_err(|source| FileError::Wrong { path: path.to_path_buf(), source })
}

/// Changes the file; what is in it afterwards.
///
/// # Errors
/// When it cannot be changed, or `change` refuses.
pub fn change_file<T>(
    path: &Path,
    change: &mut dyn FnMut(&mut People) -> Result<T, Error>,
) -> Result<(People, T), FileError> {
    let mut outcome = None;
    host::change_private(path, BYTES_MAX, &mut |text| {
        let mut people = parse(path, text)?;
        let told = change(&mut people).map_err(FileError::Refused)?;
        let text = people.to_text();
        // What could not be read again would let nobody in.
        if number::to_u64(text.len()) > BYTES_MAX || People::read(&text).is_err() {
            return Err(FileError::Refused(Error::TooMany));
        }
        outcome = Some((people, told));
        Ok::<_, FileError>(text)
    })?;
    outcome.ok_or(FileError::Refused(Error::NoPerson))
}

/// Follows an order about the person of this name; what is to be printed. With `password` that one
/// is set; without it one is made, printed once, and has to be changed at the next login. A role
/// may be one that only the service knows.
///
/// # Errors
/// When the file cannot be changed, or the order cannot be followed.
pub fn manage_people(
    path: &Path,
    (name, order, password): (&str, &Order, Option<&str>),
) -> Result<String, FileError> {
    if *order == Order::List {
        return Ok(list(&read_file(path)?));
    }
    let needs_password = matches!(order, Order::Add(_) | Order::Password);
    let chosen = needs_password.then(|| Chosen::new(password)).transpose()?;
    if let Order::Add(role) | Order::Role(role) = order {
        is_name(role).then_some(()).ok_or(FileError::Refused(Error::NoRole))?;
    }
    let stamp = host::random_bytes()?;
    let since = SystemClock.realtime().to_string();
    change_file(path, &mut |people| match (order, &chosen) {
        (Order::Add(role), Some(chosen)) => {
            people.add((name, role), chosen.verifier(), (stamp, since.clone()))
        }
        (Order::Password, Some(chosen)) => people.set_password(name, chosen.verifier(), stamp),
        (Order::Role(role), _) => people.set_role(name, role),
        (Order::Disable, _) => people.set_disabled(name, true, stamp),
        (Order::Enable, _) => people.set_disabled(name, false, stamp),
        (Order::ResetSecondFactor, _) => people.set_second_factor(name, None, stamp),
        (Order::Remove, _) => people.remove(name),
        _ => Ok(()),
    })?;
    let made = chosen.and_then(|chosen| chosen.made);
    Ok(made.map_or_else(String::new, |made| format!("{made}\n")))
}

/// A password that somebody else chooses for a person.
#[derive(Debug)]
pub struct Chosen {
    verifier: Verifier,
    /// The one that was made, to be shown once.
    pub made: Option<String>,
}

impl Chosen {
    /// This one, or a random one. It is hashed here.
    ///
    /// # Errors
    /// When it is no password.
    pub fn new(password: Option<&str>) -> Result<Self, FileError> {
        let made = match password {
            Some(_) => None,
            None => Some(generated(host::random_bytes()?)),
        };
        let text = password.or(made.as_deref()).unwrap_or_default();
        let password = Password::new(text).map_err(FileError::Refused)?;
        let verifier = password.hash(host::random_bytes()?).map_err(FileError::Refused)?;
        Ok(Self { verifier, made })
    }

    /// What an account gets, and whether it has to be changed.
    pub fn verifier(&self) -> (&Verifier, bool) {
        (&self.verifier, self.made.is_some())
    }
}

fn list(people: &People) -> String {
    let mut text = String::new();
    for person in people.all() {
        let state = if person.is_disabled() { "disabled" } else { "may log in" };
        let factor = match person.second_factor() {
            Some(factor) => {
                let keys = match factor.keys().len() {
                    0 => String::new(),
                    keys => format!(" with {}", plural(number::to_u64(keys), "key")),
                };
                format!("second factor{keys}, {} codes left", factor.recovery_left())
            }
            None => "no second factor".to_owned(),
        };
        let change = if person.must_change() { ", has to change the password" } else { "" };
        let (name, role) = (person.name(), person.role());
        let since = page::safe::printable(person.since());
        let role = page::safe::printable(role);
        // Writing to a string does not fail.
        let _infallible =
            writeln!(text, "{name}  {role}  {state}{change}, {factor}, since {since}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_made_changed_and_taken_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people");
        let manage = |name: &str, order: Order, password: Option<&str>| {
            manage_people(&path, (name, &order, password))
        };
        assert_eq!(manage("", Order::List, None).unwrap(), "");
        let made = manage("anna", Order::Add("administrator".to_owned()), None).unwrap();
        assert_eq!(made.trim().len(), 29);
        let role = || Order::Add("viewer".to_owned());
        assert_eq!(manage("bert", role(), Some("correct horse battery")).unwrap(), "");
        assert!(manage("bert", role(), None).is_err() && manage("b c", role(), None).is_err());
        assert!(manage("carl", role(), Some("too short")).is_err());
        assert!(manage("carl", Order::Add("a king".to_owned()), None).is_err());
        for order in [Order::Disable, Order::ResetSecondFactor, Order::Role("analyst".to_owned())] {
            manage("bert", order, None).unwrap();
        }
        let listed = manage("", Order::List, None).unwrap();
        let lines: Vec<&str> = listed.lines().collect();
        assert!(lines[0].starts_with("anna  administrator  may log in, has to change"), "{listed}");
        assert!(lines[1].starts_with("bert  analyst  disabled, no second factor"), "{listed}");
        manage("bert", Order::Remove, None).unwrap();
        assert!(manage("bert", Order::Enable, None).is_err());
        std::fs::write(&path, "{\"version\": 1, \"peo").unwrap();
        let error = manage("anna", Order::Disable, None).unwrap_err().to_string();
        assert!(error.contains("no file of people"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"version\": 1, \"peo", "it is left as it is");
    }
}
