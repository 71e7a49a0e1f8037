//! Logins at an identity provider: the page sends the browser there, and sends on what it comes
//! back with.
//!
//! A cookie binds both ways to one browser: who is handed the address of somebody else's login does
//! not end up in it.

use host::SystemClock;
use hyper::header::{HeaderValue, SET_COOKIE};
use interface::JSON;
use oidc::{Moment, Provider, Returned};
use people::Holder;
use serde::Deserialize;
use serde_json::json;
use units::Clock as _;

use crate::accounts::random;
use crate::body::{Body, Reply, reply};
use crate::entrance;
use crate::logins::{cookie_of, named_cookie};
use crate::problem::Problem;
use crate::received::Received;

/// Of a login that goes on at the provider.
const COOKIE: &str = "wirespool-login";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Back {
    code: String,
    state: String,
    #[serde(default)]
    iss: Option<String>,
}

fn provider<'a>(received: &'a Received<'_>) -> Result<&'a Provider, Problem> {
    let why = "this service has no identity provider (--provider)";
    received.service.credentials.provider.as_ref().ok_or_else(|| Problem::not_found(why))
}

fn now() -> Moment {
    Moment { unix_s: SystemClock.realtime().unix_seconds(), boottime_ns: SystemClock.boottime_ns() }
}

/// Begins a login: where the browser goes.
pub(crate) async fn begin(received: Received<'_>) -> Result<Reply, Problem> {
    let (random, from) = (random()?, received.peer.address.ip());
    let begun = provider(&received)?.begin(from, &random, now()).await;
    let begun = begun.map_err(|why| Problem::at_provider(&why))?;
    let mut reply =
        reply(JSON, Body::text(page::safe::json_line(&json!({ "location": begun.location }))));
    let cookie = named_cookie((COOKIE, &begun.cookie), begun.lasts_s, received.peer.has_tls);
    reply.headers_mut().insert(SET_COOKIE, cookie);
    Ok(reply)
}

/// Begins a session of who has logged in there.
pub(crate) async fn finish(mut received: Received<'_>) -> Result<Reply, Problem> {
    let Back { code, state, iss } = received.json().await?;
    let cookie = cookie_of(received.headers, COOKIE, received.peer.has_tls);
    let returned = Returned { code: &code, state: &state, issuer: iss.as_deref(), cookie };
    let identity = provider(&received)?.finish(returned, now()).await;
    let identity = identity.map_err(|why| Problem::at_provider(&why))?;
    let (name, subject) = (identity.name, identity.subject);
    let caller = received.accounts()?.guest((&name, &subject), &identity.role);
    received.entry.is_by(&name);
    received.entry.record.is_about(&subject);
    let mut reply = entrance::begin(
        &received,
        Holder::Provider { subject, name, role: identity.role },
        &caller,
    )?;
    let gone: HeaderValue = named_cookie((COOKIE, ""), 0, received.peer.has_tls);
    reply.headers_mut().append(SET_COOKIE, gone);
    Ok(reply)
}
