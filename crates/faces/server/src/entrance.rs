//! Who comes in and who leaves: logins by token or by name and password, the first administrator.

use audit::Credential;
use host::SystemClock;
use hyper::header::{AUTHORIZATION, SET_COOKIE};
use interface::JSON;
use people::{Assertion, Holder, Person, hash_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use units::Clock as _;

use crate::access::{Caller, Guest, Standing, bearer};
use crate::accounts::Typed;
use crate::body::{Body, Reply, reply};
use crate::problem::Problem;
use crate::received::Received;
use crate::service::Service;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    name: String,
    password: String,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    key: Option<Assertion>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct First {
    link: String,
    name: String,
    password: String,
}

/// Who a caller is, and what there is.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Caller")]
pub(crate) struct CallerSaid<'a> {
    name: &'a str,
    scopes: Vec<&'static str>,
    /// A query that is asked besides whatever is asked.
    filter: Option<&'a str>,
    /// How a person stands.
    person: Option<&'a Standing>,
    /// How somebody stands who has logged in at the identity provider.
    guest: Option<&'a Guest>,
    /// Which files the service has.
    manages: Manages,
    /// The address of the page at which keys can be used.
    keys_at: Option<&'a str>,
    volumes: Vec<Served>,
    version: &'a str,
    now_ns: i64,
}

#[derive(Serialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of JSON")]
struct Manages {
    people: bool,
    tokens: bool,
    audit: bool,
    requests: bool,
    /// Packets are decoded by another program, too.
    decodes: bool,
}

/// A volume that is served.
#[derive(Serialize, JsonSchema)]
struct Served {
    name: String,
    id: String,
}

/// What one can log in with, for the page.
pub(crate) fn ways(service: &Service) -> Reply {
    let said = json!({
        "people": service.credentials.accounts.is_some(),
        "tokens": service.credentials.access.file().is_some(),
        "provider": service.credentials.provider.as_ref().map(|it| it.settings().label()),
        "origin": service.credentials.origin,
    });
    reply(JSON, Body::text(page::safe::json_line(&said)))
}

/// Begins a session of a browser: in the name of the token that was sent, or of a person.
pub(crate) async fn login(
    mut received: Received<'_>,
    caller: Option<&Caller>,
) -> Result<Reply, Problem> {
    if received.headers.contains_key(AUTHORIZATION) {
        let caller = caller.ok_or_else(Problem::no_credential)?;
        let token = bearer(received.headers).ok_or_else(Problem::no_credential)?;
        return begin(&received, Holder::Token(hash_of(token)), caller);
    }
    if received.body.as_ref().is_none_or(hyper::body::Body::is_end_stream) {
        return Err(Problem::no_credential());
    }
    received.entry.record.is_checked(Some(Credential::Password));
    let Login { name, password, code, key } = received.json().await?;
    // Who types the password into the field of the name does not find it in the audit.
    if received.accounts()?.find(&name).is_some() {
        received.entry.record.is_about(&name);
    }
    let (code, key) = (code.as_deref(), key.as_ref());
    let typed = Typed { name: &name, password: &password, code, key };
    let person = received.accounts()?.check(typed, received.peer.address.ip()).await?;
    received.entry.is_by(&name);
    begin_of(&received, &person)
}

/// Makes the first administrator, by the link that the service has shown when it started.
pub(crate) async fn first(mut received: Received<'_>) -> Result<Reply, Problem> {
    received.entry.record.is_checked(Some(Credential::Link));
    let First { link, name, password } = received.json().await?;
    if people::is_name(&name) {
        received.entry.record.is_about(&name);
    }
    received.accounts()?.check_first(&link)?;
    received.begin_change().await?;
    let person = received.accounts()?.make_first(&name, &password).await?;
    received.entry.is_by(&name);
    begin_of(&received, &person)
}

/// Begins a session of a person.
pub(crate) fn begin_of(received: &Received<'_>, person: &Person) -> Result<Reply, Problem> {
    let caller = received.accounts()?.caller_of(person);
    let (name, stamp) = (person.name().to_owned(), person.stamp().to_owned());
    begin(received, Holder::Person { name, stamp }, &caller)
}

pub(crate) fn begin(
    received: &Received<'_>,
    holder: Holder,
    caller: &Caller,
) -> Result<Reply, Problem> {
    let from = (received.headers, received.peer.has_tls);
    let cookie =
        received.service.credentials.logins.begin(holder, from).ok_or_else(Problem::no_worker)?;
    let mut reply = whoami(received.service, caller);
    reply.headers_mut().insert(SET_COOKIE, cookie);
    Ok(reply)
}

pub(crate) fn logout(received: &Received<'_>) -> Reply {
    let mut reply = reply(JSON, Body::text("{}\n"));
    let cookie = received.service.credentials.logins.end(received.headers, received.peer.has_tls);
    reply.headers_mut().insert(SET_COOKIE, cookie);
    reply
}

pub(crate) fn whoami(service: &Service, caller: &Caller) -> Reply {
    let accounts = service.credentials.accounts.as_ref();
    let said = CallerSaid {
        name: &caller.name,
        scopes: caller.scopes.iter().map(|scope| scope.word()).collect(),
        filter: caller.filter.as_deref(),
        person: caller.person.as_ref(),
        guest: caller.guest.as_ref(),
        manages: Manages {
            people: accounts.is_some(),
            tokens: service.credentials.access.file().is_some(),
            audit: service.trail.path().is_some(),
            requests: service.approvals.is_some(),
            decodes: service.tshark.is_some(),
        },
        keys_at: accounts.and_then(|it| it.party().ok()).map(people::RelyingParty::origin),
        volumes: service
            .volumes
            .iter()
            .map(|it| Served { name: it.name.clone(), id: it.id().to_owned() })
            .collect(),
        version: service.version,
        now_ns: SystemClock.realtime().0,
    };
    reply(JSON, Body::text(page::safe::json_line(&said)))
}
