//! People, as an administrator sees and changes them.

use host::SystemClock;
use interface::{JSON, Matter};
use people::{Person, Role};
use schemars::JsonSchema;
use serde::Serialize;
use units::Clock as _;

use crate::accounts::{Accounts, random};
use crate::body::{Body, Reply, reply};
use crate::problem::Problem;
use crate::received::Received;

/// Answers what an administrator asks about people.
pub(crate) async fn answer(received: Received<'_>, what: Matter) -> Result<Reply, Problem> {
    let accounts = received.accounts()?;
    let name = received.id.to_owned();
    let stamp = random()?;
    match what {
        Matter::AddPerson => return add(&received).await,
        Matter::PersonPassword => return password(&received).await,
        Matter::PersonRole => {
            let role = role(&received)?.name.clone();
            accounts.change_keeping(move |people| people.set_role(&name, &role)).await?;
        }
        Matter::DisablePerson => {
            accounts.change_keeping(move |people| people.set_disabled(&name, true, stamp)).await?;
        }
        Matter::EnablePerson => {
            accounts.change(move |people| people.set_disabled(&name, false, stamp)).await?;
        }
        Matter::ResetSecondFactor => {
            accounts.change(move |people| people.set_second_factor(&name, None, stamp)).await?;
        }
        Matter::RemovePerson => {
            accounts.change_keeping(move |people| people.remove(&name)).await?;
        }
        _ => {}
    }
    Ok(list(accounts))
}

fn list(accounts: &Accounts) -> Reply {
    let (people, roles) = (accounts.people(), accounts.roles.all());
    let said = People {
        people: people.all().iter().map(ShownPerson::of).collect(),
        roles: roles.iter().map(ShownRole::of).collect(),
    };
    reply(JSON, Body::text(page::safe::json_pretty(&said)))
}

/// Who may log in, and the roles.
#[derive(Serialize, JsonSchema)]
pub(crate) struct People<'a> {
    people: Vec<ShownPerson<'a>>,
    roles: Vec<ShownRole<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Person")]
struct ShownPerson<'a> {
    name: &'a str,
    role: &'a str,
    is_disabled: bool,
    must_change_password: bool,
    has_second_factor: bool,
    keys: usize,
    /// That are left.
    recovery_codes: usize,
    since: &'a str,
}

impl<'a> ShownPerson<'a> {
    fn of(person: &'a Person) -> Self {
        let factor = person.second_factor();
        Self {
            name: person.name(),
            role: person.role(),
            is_disabled: person.is_disabled(),
            must_change_password: person.must_change(),
            has_second_factor: factor.is_some(),
            keys: factor.map_or(0, |factor| factor.keys().len()),
            recovery_codes: factor.map_or(0, people::SecondFactor::recovery_left),
            since: person.since(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Role")]
struct ShownRole<'a> {
    name: &'a str,
    scopes: Vec<&'static str>,
    filter: Option<&'a str>,
}

impl<'a> ShownRole<'a> {
    fn of(role: &'a Role) -> Self {
        let scopes = role.scopes.iter().map(|scope| scope.word()).collect();
        Self { name: &role.name, scopes, filter: role.filter.as_deref() }
    }
}

/// The role that is asked for.
fn role<'a>(received: &'a Received<'_>) -> Result<&'a Role, Problem> {
    let role = received.accounts()?.roles.find(received.given.text("role").unwrap_or_default());
    role.ok_or_else(|| Problem::account_refused(&people::Error::NoRole))
}

/// An account with a password that is shown once, and changed by who gets it.
async fn add(received: &Received<'_>) -> Result<Reply, Problem> {
    let accounts = received.accounts()?;
    let role = role(received)?.name.clone();
    let name = received.given.text("name").unwrap_or_default().to_owned();
    let chosen = accounts.chosen(None).await?;
    let made = chosen.made.clone();
    let stamp = (random()?, SystemClock.realtime().to_string());
    let of = name.clone();
    let add = move |people: &mut people::People| {
        people.add((&of, &role), chosen.verifier(), stamp.clone())
    };
    accounts.change(add).await?;
    Ok(shown_once(&name, made.as_deref()))
}

async fn password(received: &Received<'_>) -> Result<Reply, Problem> {
    let accounts = received.accounts()?;
    let chosen = accounts.chosen(None).await?;
    let (made, name, stamp) = (chosen.made.clone(), received.id.to_owned(), random()?);
    accounts.change(move |people| people.set_password(&name, chosen.verifier(), stamp)).await?;
    Ok(shown_once(received.id, made.as_deref()))
}

/// A person whose password was made here.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NewPerson<'a> {
    name: &'a str,
    /// It is shown this once.
    password: Option<&'a str>,
}

fn shown_once(name: &str, password: Option<&str>) -> Reply {
    reply(JSON, Body::text(page::safe::json_line(&NewPerson { name, password })))
}
