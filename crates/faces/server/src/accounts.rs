//! The people of a service: who may log in, and what is remembered of attempts.
//!
//! The file is read again, as that of tokens is: who is disabled there is out. While it cannot be
//! read nobody counts.

use core::net::IpAddr;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use host::SystemClock;
use people::{
    ADMINISTRATOR, Assertion, Attempt, Challenges, Chosen, Enrolment, FirstLink, Hashing, LockOut,
    Password, People, Person, RelyingParty, Roles, SecondFactor, Used, Verifier, decoy, is_name,
};
use serde_json::{Value, json};
use stage::lock;
use units::{Clock as _, NANOS_PER_SECOND};

use crate::Error;
use crate::access::{Caller, Guest, Shown, ShownKey, Standing};
use crate::problem::Problem;
use crate::reread::Reread;

/// A second factor is set up within this.
const ENROLMENT_NS: i64 = 600 * NANOS_PER_SECOND;

/// The people of a service.
#[derive(Debug)]
pub(crate) struct Accounts {
    file: PathBuf,
    pub(crate) roles: Roles,
    known: Reread<People>,
    lock_out: Mutex<LockOut>,
    hashing: Hashing,
    /// What the password of nobody is compared with.
    decoy: Verifier,
    first: Mutex<Option<FirstLink>>,
    /// Steps of codes that were used, also where the file could not be written.
    used_steps: Mutex<BTreeMap<String, u64>>,
    enrolments: Mutex<BTreeMap<String, (Enrolment, i64)>>,
    /// Whom keys are made for; nobody where the address of the page is not known.
    party: Option<RelyingParty>,
    /// What keys of persons who log in were asked.
    asked: Mutex<Challenges>,
    /// What keys that are being registered were asked.
    asked_new: Mutex<Challenges>,
}

/// What was typed to log in.
#[derive(Clone, Copy)]
pub(crate) struct Typed<'a> {
    pub(crate) name: &'a str,
    pub(crate) password: &'a str,
    pub(crate) code: Option<&'a str>,
    pub(crate) key: Option<&'a Assertion>,
}

impl Accounts {
    pub(crate) fn open(
        file: PathBuf,
        roles: Roles,
        party: Option<RelyingParty>,
    ) -> Result<Self, Error> {
        let people = people::read_file(&file)?;
        let decoy = decoy(host::random_bytes()?).map_err(people::FileError::Refused)?;
        Ok(Self {
            file,
            roles,
            known: Reread::new(people),
            lock_out: Mutex::default(),
            hashing: Hashing::start()?,
            decoy,
            first: Mutex::default(),
            used_steps: Mutex::default(),
            enrolments: Mutex::default(),
            party,
            asked: Mutex::default(),
            asked_new: Mutex::default(),
        })
    }

    /// Reads the file again. False where it was looked at a moment ago.
    pub(crate) fn refresh(&self) -> Result<bool, Error> {
        self.known.refresh(|| people::read_file(&self.file).map_err(Error::from))
    }

    /// Where nobody can manage people: the secret of a link that makes an administrator.
    pub(crate) fn begin_first(&self) -> Result<Option<String>, Error> {
        if self.known.with(|people| people.has_administrator(&self.roles)) {
            return Ok(None);
        }
        let (link, secret) = FirstLink::new(host::random_bytes()?, SystemClock.boottime_ns());
        *lock(&self.first) = Some(link);
        Ok(Some(secret))
    }

    /// Whether this is the secret of the link, in time.
    pub(crate) fn check_first(&self, secret: &str) -> Result<(), Problem> {
        let fits = |link: &FirstLink| link.fits(secret, SystemClock.boottime_ns());
        let counts = lock(&self.first).as_ref().is_some_and(fits);
        counts.then_some(()).ok_or_else(Problem::link_over)
    }

    /// Makes the first administrator, for who has shown the secret of the link.
    pub(crate) async fn make_first(&self, name: &str, password: &str) -> Result<Person, Problem> {
        let chosen = self.chosen(Some(password)).await?;
        let (roles, of) = (self.roles.clone(), name.to_owned());
        let stamp = (random()?, SystemClock.realtime().to_string());
        // Two that use the link at once come one after the other here.
        self.change(move |people| {
            if people.has_administrator(&roles) {
                return Err(people::Error::HasAdministrator);
            }
            people.add((&of, ADMINISTRATOR), chosen.verifier(), stamp.clone())
        })
        .await?;
        *lock(&self.first) = None;
        self.find(name).ok_or_else(Problem::wrong_login)
    }

    /// All people.
    pub(crate) fn people(&self) -> People {
        self.known.with(People::clone)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Person> {
        self.known.with(|people| people.find(name).cloned())
    }

    /// What the person of a session may do, if they still count.
    pub(crate) fn caller(&self, name: &str, stamp: &str) -> Option<Caller> {
        let person = self.find(name)?;
        let counts = !person.is_disabled() && person.stamp() == stamp;
        counts.then(|| self.caller_of(&person))
    }

    /// What the person of an account that was made then may do, if they still count.
    pub(crate) fn by_mark(&self, name: &str, since: &str) -> Option<Caller> {
        let person = self.find(name)?;
        let counts = !person.is_disabled() && person.since() == since;
        counts.then(|| self.caller_of(&person))
    }

    pub(crate) fn caller_of(&self, person: &Person) -> Caller {
        let role = self.roles.find(person.role()).filter(|_| !person.must_change());
        let factor = person.second_factor();
        Caller {
            name: person.name().to_owned(),
            scopes: role.map(|role| role.scopes.clone()).unwrap_or_default(),
            filter: role.and_then(|role| role.filter.clone()),
            person: Some(Standing {
                role: person.role().to_owned(),
                must_change_password: person.must_change(),
                has_second_factor: factor.is_some(),
                has_authenticator: factor.is_some_and(SecondFactor::has_authenticator),
                keys: factor.map_or_else(Vec::new, |factor| {
                    factor.keys().iter().map(ShownKey::of).collect()
                }),
                recovery_codes: factor.map_or(0, SecondFactor::recovery_left),
            }),
            guest: None,
            mark: Some(person.since().to_owned()),
            shown: Shown::Account(person.stamp().to_owned()),
        }
    }

    /// What somebody may do who has logged in at the provider: as their role is, nothing where it
    /// is gone.
    pub(crate) fn guest(&self, (name, subject): (&str, &str), role: &str) -> Caller {
        let found = self.roles.find(role);
        Caller {
            name: name.to_owned(),
            scopes: found.map(|role| role.scopes.clone()).unwrap_or_default(),
            filter: found.and_then(|role| role.filter.clone()),
            person: None,
            guest: Some(Guest { role: role.to_owned(), subject: subject.to_owned() }),
            mark: None,
            shown: Shown::Nothing,
        }
    }

    /// Who has this name, password and code. What is wrong with name or password is not said, and
    /// takes the same time.
    pub(crate) async fn check(&self, typed: Typed<'_>, from: IpAddr) -> Result<Person, Problem> {
        let (person, attempt) = self.check_password(typed, from).await?;
        if let Some(factor) = person.second_factor() {
            let used = match (typed.code, typed.key) {
                (Some(code), _) => self.check_code(typed.name, factor, code)?,
                (None, Some(key)) => self.check_key(typed.name, factor, key)?,
                (None, None) => {
                    lock(&self.lock_out).take_back(&attempt);
                    return Err(Problem::needs_code(self.ask_factor(typed.name, factor)?));
                }
            };
            if !self.use_up(typed.name, used).await? {
                return Err(Problem::wrong_code());
            }
        }
        lock(&self.lock_out).succeed(&attempt);
        Ok(person)
    }

    fn check_code(&self, name: &str, factor: &SecondFactor, code: &str) -> Result<Used, Problem> {
        let used_step = lock(&self.used_steps).get(name).copied().unwrap_or(0);
        let used = factor.check(code, SystemClock.realtime(), used_step);
        used.ok_or_else(Problem::wrong_code)
    }

    fn check_key(
        &self,
        name: &str,
        factor: &SecondFactor,
        key: &Assertion,
    ) -> Result<Used, Problem> {
        let now_ns = SystemClock.boottime_ns();
        let was_asked = |signed: &[u8]| lock(&self.asked).take(name, signed, now_ns);
        let used = key.check(self.party()?, factor.keys(), was_asked);
        used.map(Used::Key).map_err(Problem::wrong_key)
    }

    /// Whom keys are made for.
    pub(crate) fn party(&self) -> Result<&RelyingParty, Problem> {
        self.party.as_ref().ok_or_else(Problem::no_keys)
    }

    /// What counts as a second factor of a person who has shown the password.
    fn ask_factor(&self, name: &str, factor: &SecondFactor) -> Result<Value, Problem> {
        let keys: Vec<&str> = factor.keys().iter().map(people::Key::id).collect();
        let Some(party) = self.party.as_ref().filter(|_| !keys.is_empty()) else {
            return Ok(json!({"authenticator": factor.has_authenticator(), "key": null}));
        };
        let challenge = lock(&self.asked).begin(name, random()?, SystemClock.boottime_ns());
        let (domain, origin) = (party.domain(), party.origin());
        let key =
            json!({"challenge": challenge, "rp_id": domain, "origin": origin, "credentials": keys});
        Ok(json!({"authenticator": factor.has_authenticator(), "key": key}))
    }

    /// Has a key that is being registered asked something; its text form.
    pub(crate) fn ask_new_key(&self, name: &str) -> Result<String, Problem> {
        Ok(lock(&self.asked_new).begin(name, random()?, SystemClock.boottime_ns()))
    }

    /// Uses up what a key that is being registered was asked.
    pub(crate) fn was_new_key_asked(&self, name: &str, signed: &[u8]) -> bool {
        lock(&self.asked_new).take(name, signed, SystemClock.boottime_ns())
    }

    async fn check_password(
        &self,
        typed: Typed<'_>,
        from: IpAddr,
    ) -> Result<(Person, Attempt), Problem> {
        // What is no name is nobody's, and takes no room.
        let name = if is_name(typed.name) { typed.name } else { "" };
        let now_ns = SystemClock.boottime_ns();
        let attempt = lock(&self.lock_out).begin(name, from, now_ns).map_err(Problem::locked)?;
        let person = self.find(name).filter(|person| !person.is_disabled());
        let verifier = person.as_ref().map_or_else(|| self.decoy.clone(), Person::verifier);
        let password = Password::typed(typed.password);
        let password = password.map_err(|error| Problem::account_refused(&error))?;
        let fits = self.hashing.run(move || password.fits(&verifier)).await;
        let fits = fits.ok_or_else(|| {
            lock(&self.lock_out).take_back(&attempt);
            Problem::busy()
        })?;
        let person = person.filter(|_| fits).ok_or_else(Problem::wrong_login)?;
        Ok((person, attempt))
    }

    /// Marks a code as used; false where another login was first.
    async fn use_up(&self, name: &str, used: Used) -> Result<bool, Problem> {
        if let Used::Step(step) = used {
            let mut steps = lock(&self.used_steps);
            let newest = steps.entry(name.to_owned()).or_default();
            if step <= *newest {
                return Ok(false);
            }
            *newest = step;
        }
        let (of, taken) = (name.to_owned(), used.clone());
        let written = self.change(move |people| people.use_code(&of, &taken)).await;
        match used {
            // It is remembered here; a full disk keeps nobody out. What a key was asked is over.
            Used::Step(_) | Used::Key(_) => Ok(written.unwrap_or(true)),
            Used::Recovery(_) => written,
        }
    }

    /// A password that somebody chooses, hashed.
    pub(crate) async fn chosen(&self, password: Option<&str>) -> Result<Chosen, Problem> {
        let password = password.map(str::to_owned);
        let chosen = self.hashing.run(move || Chosen::new(password.as_deref())).await;
        chosen
            .ok_or_else(Problem::busy)?
            .map_err(|error| Problem::account_not_changed(&error.into()))
    }

    /// Sets up a second factor for who logs in by this name, once [`Self::confirm`] is told a code.
    pub(crate) fn enrol(&self, name: &str) -> Result<Enrolment, Problem> {
        let enrolment = Enrolment::new(random()?);
        let until_ns = SystemClock.boottime_ns().saturating_add(ENROLMENT_NS);
        lock(&self.enrolments).insert(name.to_owned(), (enrolment.clone(), until_ns));
        Ok(enrolment)
    }

    /// Codes for who loses the authenticator, where this is one of its codes.
    pub(crate) async fn confirm(&self, name: &str, code: &str) -> Result<Vec<String>, Problem> {
        let begun = lock(&self.enrolments).get(name).cloned();
        let begun = begun.filter(|(_, until_ns)| SystemClock.boottime_ns() < *until_ns);
        let (enrolment, _) = begun.ok_or_else(Problem::no_enrolment)?;
        let confirmed = enrolment.confirm(code, SystemClock.realtime(), &random()?);
        let (factor, codes) = confirmed.ok_or_else(Problem::wrong_new_code)?;
        let (of, stamp) = (name.to_owned(), random()?);
        self.change(move |people| people.set_authenticator(&of, factor.clone(), stamp)).await?;
        lock(&self.enrolments).remove(name);
        lock(&self.used_steps).remove(name);
        Ok(codes)
    }

    /// Changes the file, where it cannot keep others waiting.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        mut change: impl FnMut(&mut People) -> Result<T, people::Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let file = self.file.clone();
        let work = move || people::change_file(&file, &mut change);
        let changed = tokio::task::spawn_blocking(work).await;
        let changed = changed.map_err(|_| Problem::worker_ended())?;
        let (people, told) =
            changed.map_err(|error| Problem::account_not_changed(&error.into()))?;
        self.known.set(people);
        Ok(told)
    }

    /// The same of what must leave somebody who can manage people.
    pub(crate) async fn change_keeping(
        &self,
        mut change: impl FnMut(&mut People) -> Result<(), people::Error> + Send + 'static,
    ) -> Result<(), Problem> {
        let roles = self.roles.clone();
        self.change(move |people| {
            let had = people.has_administrator(&roles);
            change(people)?;
            let is_kept = !had || people.has_administrator(&roles);
            if is_kept { Ok(()) } else { Err(people::Error::LastAdministrator) }
        })
        .await
    }
}

/// Bytes for stamps and secrets.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Problem> {
    host::random_bytes().map_err(|_| Problem::no_worker())
}
