//! Tokens, as an administrator sees, makes and revokes them.

use std::path::Path;

use interface::{JSON, Matter};
use people::Scope;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use units::Timestamp;

use crate::access::{ShownToken, new_token};
use crate::body::{Body, Reply, reply};
use crate::problem::Problem;
use crate::received::Received;
use crate::{Error, token_file};

/// The lines of the file of tokens.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Tokens")]
pub(crate) struct TokenList {
    tokens: Vec<ShownToken>,
    /// The service may write the file of tokens.
    can_change: bool,
}

/// Answers what an administrator asks about tokens.
pub(crate) async fn answer(received: Received<'_>, what: Matter) -> Result<Reply, Problem> {
    let why = "this service has no file of tokens (--token-file)";
    let file = received.service.credentials.access.file().ok_or_else(|| Problem::not_found(why))?;
    match what {
        Matter::CreateToken => create(&received, file).await,
        Matter::RevokeToken => revoke(&received, file).await,
        _ => Ok(list(&received, file)),
    }
}

fn list(received: &Received<'_>, file: &Path) -> Reply {
    let tokens = received.service.credentials.access.shown();
    let said = TokenList { tokens, can_change: host::may_replace(file) };
    reply(JSON, Body::text(page::safe::json_pretty(&said)))
}

async fn create(received: &Received<'_>, file: &Path) -> Result<Reply, Problem> {
    let given = received.given;
    let name = given.text("name").unwrap_or_default().to_owned();
    let scopes = Scope::list(given.text("scopes").unwrap_or_default());
    let scopes = scopes.map_err(Problem::wrong_parameter)?;
    let expires = given.text("expires").map(str::parse::<Timestamp>).transpose();
    let why = "expires is no time of RFC 3339";
    let expires = expires.map_err(|_| Problem::wrong_parameter(why))?;
    let filter = given.filled("filter")?.map(str::to_owned);
    let path = file.to_path_buf();
    let make = move || {
        token_file::add(&path, &|others| {
            new_token(&name, &scopes, (expires, filter.as_deref()), others)
        })
    };
    let token = changed(tokio::task::spawn_blocking(make).await)?;
    received.service.credentials.access.look_again();
    Ok(reply(JSON, Body::text(page::safe::json_line(&json!({ "token": token })))))
}

async fn revoke(received: &Received<'_>, file: &Path) -> Result<Reply, Problem> {
    let (path, name) = (file.to_path_buf(), received.id.to_owned());
    changed(tokio::task::spawn_blocking(move || token_file::remove(&path, &name)).await)?;
    received.service.credentials.access.look_again();
    received.service.refresh_access();
    Ok(list(received, file))
}

fn changed<T>(done: Result<Result<T, Error>, tokio::task::JoinError>) -> Result<T, Problem> {
    match done {
        Ok(Ok(told)) => Ok(told),
        Ok(Err(Error::NewToken(why))) => Err(Problem::wrong_parameter(why)),
        Ok(Err(Error::TokenTaken)) => Err(Problem::token_taken()),
        Ok(Err(Error::NoToken)) => Err(Problem::not_found("there is no token of this name")),
        Ok(Err(error)) => Err(Problem::account_not_changed(&error)),
        Err(_) => Err(Problem::worker_ended()),
    }
}
