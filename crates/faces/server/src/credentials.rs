//! All that lets somebody in: tokens and certificates, people, and sessions of browsers.

use std::sync::Mutex;

use approvals::{Party, PartyKind};
use host::SystemClock;
use oidc::Provider;
use people::Roles;
use units::Clock as _;

use crate::access::{Access, Caller};
use crate::accounts::Accounts;
use crate::config::Staff;
use crate::logins::Logins;
use crate::{Config, Error};

/// All that lets somebody in.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) access: Access,
    pub(crate) logins: Logins,
    /// Who may log in by name and password.
    pub(crate) accounts: Option<Accounts>,
    /// Where browsers find the page, where that is known.
    pub(crate) origin: Option<String>,
    /// Where people may log in, too.
    pub(crate) provider: Option<Provider>,
    /// What is wrong with a file was told.
    has_told: Mutex<bool>,
}

impl Credentials {
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let accounts = |staff: &Staff| {
            Accounts::open(staff.file.clone(), Roles::new(&staff.roles), config.party())
        };
        Ok(Self {
            access: Access::open(config.token_file.clone())?,
            logins: Logins::default(),
            accounts: config.people.as_ref().map(accounts).transpose()?,
            origin: config.origin().map(|origin| origin.to_string()),
            provider: provider(config)?,
            has_told: Mutex::default(),
        })
    }

    /// Reads the files again; what is wrong with them, once.
    pub(crate) fn refresh(&self) -> Option<Error> {
        let people = self.accounts.as_ref().map_or(Ok(false), Accounts::refresh);
        let tokens = self.access.refresh();
        let refreshed = tokens.and_then(|is_new| Ok(people? || is_new));
        let mut has_told = stage::lock(&self.has_told);
        match refreshed {
            Err(error) => (!core::mem::replace(&mut *has_told, true)).then_some(error),
            Ok(is_new) => {
                *has_told &= !is_new;
                None
            }
        }
    }

    /// Whether a credential that was seen before may still do something. Of who logged in at the
    /// provider nothing is known until the next login.
    pub(crate) fn still(&self, party: &Party, may: &dyn Fn(&Caller) -> bool) -> bool {
        let Party { kind, name, mark } = party;
        let now = SystemClock.realtime();
        let caller = match kind {
            PartyKind::Token => self.access.by_mark(name, mark, now),
            PartyKind::Certificate => self.access.by_certificate(name, now),
            PartyKind::Person => self.accounts.as_ref().and_then(|it| it.by_mark(name, mark)),
            PartyKind::Provider => return self.provider.is_some(),
        };
        caller.is_some_and(|caller| may(&caller))
    }

    /// Whether the files can be read.
    pub(crate) fn are_known(&self) -> bool {
        !*stage::lock(&self.has_told)
    }
}

/// The provider of the settings, whose roles are there.
fn provider(config: &Config) -> Result<Option<Provider>, Error> {
    let (Some(path), Some(origin)) = (&config.provider, config.origin()) else { return Ok(None) };
    let settings = oidc::Settings::read(path)?;
    let roles = Roles::new(config.people.as_ref().map_or(&[][..], |staff| &staff.roles));
    if let Some(role) = settings.roles().find(|role| roles.find(role).is_none()) {
        return Err(Error::ProviderRole(path.clone(), role.to_owned()));
    }
    Ok(Some(Provider::new(settings, origin.as_str())?))
}
