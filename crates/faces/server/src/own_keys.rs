//! The keys of a person's own account (Web Authentication), as second factors.

use data_encoding::BASE64URL_NOPAD;
use host::SystemClock;
use interface::{JSON, Matter};
use people::{RecoveryCodes, Registration, hash_of};
use serde::Deserialize;
use serde_json::{Value, json};
use units::Clock as _;

use crate::accounts::random;
use crate::body::{Body, Reply, reply};
use crate::own_account::{go_on, prove};
use crate::problem::Problem;
use crate::received::Received;

/// How the page shows for whom a key is.
const SERVICE: &str = "wirespool";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    name: String,
    key: Registration,
}

/// Answers what the person of this name asks about the own keys.
pub(crate) async fn answer(
    received: Received<'_>,
    name: &str,
    what: Matter,
) -> Result<Reply, Problem> {
    match what {
        Matter::BeginKey => begin(received, name).await,
        Matter::ConfirmKey => confirm(received, name).await,
        _ => end(received, name).await,
    }
}

/// What a browser is to have a new key sign.
async fn begin(mut received: Received<'_>, name: &str) -> Result<Reply, Problem> {
    received.accounts()?.party()?;
    prove(&mut received, name).await?;
    let accounts = received.accounts()?;
    let party = accounts.party()?;
    let person = accounts.find(name).ok_or_else(Problem::no_credential)?;
    let keys = person.second_factor().map(people::SecondFactor::keys).unwrap_or_default();
    let credential = |key: &people::Key| json!({"type": "public-key", "id": key.id()});
    let algorithm = |number: i64| json!({"type": "public-key", "alg": number});
    // It is the same for all keys of a person, and says nothing about the person (section 5.4.3).
    let user = BASE64URL_NOPAD.encode(&hash_of(&format!("{} {name}", party.domain())));
    let said = json!({
        "challenge": accounts.ask_new_key(name)?,
        "rp": {"id": party.domain(), "name": SERVICE},
        "user": {"id": user, "name": name, "displayName": name},
        "pubKeyCredParams": Registration::ALGORITHMS.map(algorithm),
        "excludeCredentials": keys.iter().map(credential).collect::<Vec<Value>>(),
        "authenticatorSelection": {"residentKey": "discouraged", "userVerification": "discouraged"},
        "attestation": "none",
        "origin": party.origin(),
    });
    Ok(reply(JSON, Body::text(page::safe::json_line(&said))))
}

/// Takes a new key, where what it signed is right. Other sessions of the person end.
async fn confirm(mut received: Received<'_>, name: &str) -> Result<Reply, Problem> {
    let New { name: called, key } = received.json().await?;
    let accounts = received.accounts()?;
    let was_asked = |signed: &[u8]| accounts.was_new_key_asked(name, signed);
    let new = key.check(accounts.party()?, was_asked);
    let new = new.map_err(Problem::wrong_new_key)?;
    let key = new.named(&called, SystemClock.realtime().to_string());
    let key = key.ok_or_else(|| Problem::account_refused(&people::Error::WrongKeyName))?;
    let (of, stamp, codes) = (name.to_owned(), random()?, RecoveryCodes::new(&random()?));
    let shown = codes.clone();
    let add = move |people: &mut people::People| people.add_key(&of, (key.clone(), &codes), stamp);
    let is_first = accounts.change(add).await?;
    let codes: &[String] = if is_first { shown.shown() } else { &[] };
    let said = json!({ "recovery_codes": codes });
    let begun = go_on(&received, name)?;
    Ok(begun.map(|_| Body::text(page::safe::json_line(&said))))
}

/// Takes a key away. Other sessions of the person end.
async fn end(mut received: Received<'_>, name: &str) -> Result<Reply, Problem> {
    prove(&mut received, name).await?;
    let (of, id, stamp) = (name.to_owned(), received.id.to_owned(), random()?);
    let accounts = received.accounts()?;
    accounts.change(move |people| people.remove_key(&of, &id, stamp)).await?;
    go_on(&received, name)
}
