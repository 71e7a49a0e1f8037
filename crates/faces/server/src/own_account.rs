//! What a person changes of the own account. Each change asks for the password again: who finds a
//! browser open does not take the account over.

use interface::{JSON, Matter};
use people::{Assertion, Password};
use serde::Deserialize;
use serde_json::json;

use crate::accounts::{Typed, random};
use crate::body::{Body, Reply, reply};
use crate::entrance::begin_of;
use crate::problem::Problem;
use crate::received::Received;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    password: String,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    key: Option<Assertion>,
    new_password: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proof {
    password: String,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    key: Option<Assertion>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    code: String,
}

/// Answers what the person of this name asks about the own account.
pub(crate) async fn answer(
    received: Received<'_>,
    name: &str,
    what: Matter,
) -> Result<Reply, Problem> {
    match what {
        Matter::ChangePassword => change_password(received, name).await,
        Matter::BeginSecondFactor => begin_second_factor(received, name).await,
        Matter::ConfirmSecondFactor => confirm_second_factor(received, name).await,
        _ => end_second_factor(received, name).await,
    }
}

/// Sets the password. All sessions of the person end; this one goes on under another cookie.
async fn change_password(mut received: Received<'_>, name: &str) -> Result<Reply, Problem> {
    let Change { password, code, key, new_password } = received.json().await?;
    let refused = |error| Problem::account_refused(&error);
    let (old, new) = (Password::typed(&password), Password::new(&new_password));
    let is_same = old.map_err(refused)? == new.map_err(refused)?;
    let (code, key) = (code.as_deref(), key.as_ref());
    let typed = Typed { name, password: &password, code, key };
    received.accounts()?.check(typed, received.peer.address.ip()).await?;
    if is_same {
        return Err(refused(people::Error::SamePassword));
    }
    let accounts = received.accounts()?;
    let chosen = accounts.chosen(Some(&new_password)).await?;
    let (of, stamp) = (name.to_owned(), random()?);
    accounts.change(move |people| people.set_password(&of, chosen.verifier(), stamp)).await?;
    go_on(&received, name)
}

/// The password was typed again, with a code or a key where there is a second factor.
pub(crate) async fn prove(received: &mut Received<'_>, name: &str) -> Result<(), Problem> {
    let Proof { password, code, key } = received.json().await?;
    let (code, key) = (code.as_deref(), key.as_ref());
    let typed = Typed { name, password: &password, code, key };
    received.accounts()?.check(typed, received.peer.address.ip()).await?;
    Ok(())
}

/// A session after one that has ended with all others of the person.
pub(crate) fn go_on(received: &Received<'_>, name: &str) -> Result<Reply, Problem> {
    received.service.credentials.logins.end_of(name);
    let person = received.accounts()?.find(name).ok_or_else(Problem::no_credential)?;
    begin_of(received, &person)
}

/// A secret for an authenticator. It counts once a code of it was typed.
async fn begin_second_factor(mut received: Received<'_>, name: &str) -> Result<Reply, Problem> {
    prove(&mut received, name).await?;
    let enrolment = received.accounts()?.enrol(name)?;
    let qr = enrolment.qr(name).map(|(size, path)| json!({"size": size, "path": path}));
    let said = json!({"secret": enrolment.secret(), "link": enrolment.link(name), "qr": qr});
    Ok(reply(JSON, Body::text(page::safe::json_line(&said))))
}

async fn confirm_second_factor(mut received: Received<'_>, name: &str) -> Result<Reply, Problem> {
    let Code { code } = received.json().await?;
    let codes = received.accounts()?.confirm(name, &code).await?;
    let begun = go_on(&received, name)?;
    let said = json!({"recovery_codes": codes});
    Ok(begun.map(|_| Body::text(page::safe::json_line(&said))))
}

async fn end_second_factor(mut received: Received<'_>, name: &str) -> Result<Reply, Problem> {
    prove(&mut received, name).await?;
    let (of, stamp) = (name.to_owned(), random()?);
    let accounts = received.accounts()?;
    accounts.change(move |people| people.end_authenticator(&of, stamp)).await?;
    go_on(&received, name)
}
