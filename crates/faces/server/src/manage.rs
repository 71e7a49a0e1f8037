//! Matters of people, tokens and the audit, each with who answers it.

use interface::Matter;

use crate::access::Caller;
use crate::body::Reply;
use crate::problem::Problem;
use crate::received::Received;
use crate::{at_provider, audit_page, entrance, own_account, own_keys, staff, token_list};

/// Answers what needs no credential, or brings its own.
pub(crate) async fn answer_entering(
    received: Received<'_>,
    caller: Option<&Caller>,
    what: Matter,
) -> Result<Reply, Problem> {
    match what {
        Matter::Login => entrance::login(received, caller).await,
        Matter::First => entrance::first(received).await,
        Matter::BeginAtProvider => at_provider::begin(received).await,
        Matter::FinishAtProvider => at_provider::finish(received).await,
        _ => Ok(entrance::ways(received.service)),
    }
}

/// Answers the others of these matters.
pub(crate) async fn answer(
    mut received: Received<'_>,
    caller: &Caller,
    what: Matter,
) -> Result<Reply, Problem> {
    if what.changes() {
        received.begin_change().await?;
    }
    match what {
        Matter::Logout => Ok(entrance::logout(&received)),
        Matter::ChangePassword
        | Matter::BeginSecondFactor
        | Matter::ConfirmSecondFactor
        | Matter::EndSecondFactor => {
            own_account::answer(received, named_person(caller)?, what).await
        }
        Matter::BeginKey | Matter::ConfirmKey | Matter::EndKey => {
            own_keys::answer(received, named_person(caller)?, what).await
        }
        Matter::Tokens | Matter::CreateToken | Matter::RevokeToken => {
            token_list::answer(received, what).await
        }
        Matter::Audit | Matter::AuditCheck => audit_page::answer(&received, what).await,
        Matter::Caller => Ok(entrance::whoami(received.service, caller)),
        _ => staff::answer(received, what).await,
    }
}

/// The name of a person: a token and a certificate have no account.
fn named_person(caller: &Caller) -> Result<&str, Problem> {
    caller.person.is_some().then_some(&*caller.name).ok_or_else(Problem::no_person)
}
