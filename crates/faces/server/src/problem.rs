//! Errors as problem details (RFC 9457): one form for all endpoints.

use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use people::WrongKey;
use questions::{Refused, Why};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Error;
use crate::body::{Body, Reply};

/// Before the word of a problem in its `type`.
const PREFIX: &str = "urn:wirespool:problem:";
/// Seconds after which one may ask again.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("5");

/// Why a request is not answered (RFC 9457).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Problem(Box<Details>);

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct Details {
    /// A word that scripts may rely on.
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// Of a query that is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<InQuery>,
    /// Of an attempt that has to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<i64>,
    /// What counts as a second factor of who has shown the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    second_factor: Option<Value>,
    #[serde(skip)]
    allow: Option<HeaderValue>,
}

/// Where a query is wrong.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct InQuery {
    /// Bytes from the start of the query.
    at: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
    /// The line with a caret under the place.
    shown: String,
}

impl Problem {
    fn new(status: StatusCode, word: &str, title: &'static str) -> Self {
        let kind = format!("{PREFIX}{word}");
        let status = status.as_u16();
        Self(Box::new(Details {
            kind,
            title,
            status,
            detail: None,
            query: None,
            retry_after_s: None,
            second_factor: None,
            allow: None,
        }))
    }

    fn because(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// In words, for those who take no JSON.
    pub(crate) fn text(&self) -> String {
        let Details { title, detail, .. } = &*self.0;
        match detail {
            Some(detail) => format!("{title}: {detail}\n"),
            None => format!("{title}\n"),
        }
    }

    pub(crate) fn no_credential() -> Self {
        let title = "a credential is needed";
        Self::new(StatusCode::UNAUTHORIZED, "no-credential", title)
            .because("send a token (Authorization: Bearer ...) or a client certificate, or log in")
    }

    /// Of an unknown name as of a wrong password.
    pub(crate) fn wrong_login() -> Self {
        let title = "name or password is wrong, or the account is disabled";
        Self::new(StatusCode::UNAUTHORIZED, "wrong-login", title)
    }

    pub(crate) fn needs_code(second_factor: Value) -> Self {
        let title = "a code or a key of the second factor is needed";
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "needs-code", title);
        problem.0.second_factor = Some(second_factor);
        problem
    }

    pub(crate) fn wrong_key(why: WrongKey) -> Self {
        let title = "the key was not accepted";
        Self::new(StatusCode::UNAUTHORIZED, "wrong-key", title).because(why.to_string())
    }

    /// The session counts: only what the new key said does not.
    pub(crate) fn wrong_new_key(why: WrongKey) -> Self {
        let title = "the key was not registered";
        Self::new(StatusCode::BAD_REQUEST, "wrong-new-key", title).because(why.to_string())
    }

    pub(crate) fn no_keys() -> Self {
        let title = "this service has no keys: it does not know the address of its page";
        Self::new(StatusCode::CONFLICT, "no-keys", title)
            .because("start it with --public-url https://NAME, as browsers open it")
    }

    pub(crate) fn wrong_code() -> Self {
        let title = "the code is wrong, over, or was used";
        Self::new(StatusCode::UNAUTHORIZED, "wrong-code", title)
    }

    /// The session counts: only what was typed does not.
    pub(crate) fn wrong_new_code() -> Self {
        let title = "this is no code of the new secret at this time";
        Self::new(StatusCode::BAD_REQUEST, "wrong-new-code", title)
            .because("the clocks of the authenticator and of this machine may differ")
    }

    pub(crate) fn no_enrolment() -> Self {
        let title = "no second factor is being set up, or it took more than ten minutes";
        Self::new(StatusCode::CONFLICT, "no-enrolment", title)
    }

    /// After so many failures an attempt waits.
    pub(crate) fn locked(left_ns: i64) -> Self {
        let seconds = left_ns.max(1).unsigned_abs().div_ceil(1_000_000_000);
        let title = "too many failures: wait before the next attempt";
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "locked", title);
        let mut problem = problem.because(format!("the next attempt counts in {seconds} s"));
        problem.0.retry_after_s = i64::try_from(seconds).ok();
        problem
    }

    pub(crate) fn at_provider(why: &oidc::Wrong) -> Self {
        use oidc::Wrong;
        let (status, word, title) = match why {
            Wrong::Away(_) => {
                let title = "the identity provider does not answer as it should";
                (StatusCode::BAD_GATEWAY, "provider-away", title)
            }
            Wrong::Busy => return Self::busy(),
            Wrong::Over => (StatusCode::GONE, "login-over", "log in again"),
            Wrong::Person(_) => {
                (StatusCode::FORBIDDEN, "no-role", "you have no role at this recorder")
            }
            _ => {
                let title = "what the identity provider says does not count";
                (StatusCode::UNAUTHORIZED, "wrong-identity", title)
            }
        };
        Self::new(status, word, title).because(why.to_string())
    }

    pub(crate) fn link_over() -> Self {
        let title = "this link is over, was used, or is none";
        Self::new(StatusCode::GONE, "link-over", title)
            .because("without an administrator a service shows a new one when it starts")
    }

    pub(crate) fn cross_origin() -> Self {
        let title = "a page of another origin may not change anything here";
        Self::new(StatusCode::FORBIDDEN, "cross-origin", title)
    }

    pub(crate) fn must_change_password() -> Self {
        let title = "the password has to be changed first";
        Self::new(StatusCode::FORBIDDEN, "must-change-password", title)
    }

    pub(crate) fn no_person() -> Self {
        let title = "only a person who has logged in has an account";
        Self::new(StatusCode::FORBIDDEN, "no-person", title)
    }

    pub(crate) fn wrong_body() -> Self {
        let title = "the body is not the JSON that is described for this request";
        Self::new(StatusCode::BAD_REQUEST, "wrong-body", title)
    }

    /// A body that would be left unread: what it asks for is not what would be done.
    pub(crate) fn takes_no_body() -> Self {
        let title = "this request takes no body";
        Self::new(StatusCode::BAD_REQUEST, "wrong-body", title)
            .because("its parameters stand behind the question mark of its address")
    }

    pub(crate) fn broken_body(what: &str) -> Self {
        let title = "the body did not arrive whole";
        Self::new(StatusCode::BAD_REQUEST, "wrong-body", title).because(what)
    }

    pub(crate) fn late_body(what: &str) -> Self {
        let title = "the body took too long";
        Self::new(StatusCode::REQUEST_TIMEOUT, "late-body", title).because(what)
    }

    pub(crate) fn several_hosts() -> Self {
        let title = "the heading of the request is wrong";
        Self::new(StatusCode::BAD_REQUEST, "wrong-heading", title)
            .because("there is more than one Host in it")
    }

    pub(crate) fn long_heading() -> Self {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self::new(status, "too-long", "the request is too long")
            .because("its line and its heading have at most 64 KiB")
    }

    pub(crate) fn account_refused(error: &people::Error) -> Self {
        use people::Error as Refused;
        let (status, word, title) = match error {
            Refused::NoPerson | Refused::NoKey => {
                (StatusCode::NOT_FOUND, "not-found", "there is nothing of this name")
            }
            Refused::NameTaken | Refused::TooMany => {
                (StatusCode::CONFLICT, "taken", "the name is taken")
            }
            Refused::KeyTaken | Refused::TooManyKeys => {
                (StatusCode::CONFLICT, "taken", "the key is not taken")
            }
            Refused::LastAdministrator | Refused::HasAdministrator => {
                (StatusCode::CONFLICT, "administrator", "that would not leave one administrator")
            }
            _ => (StatusCode::BAD_REQUEST, "wrong-parameter", "a parameter is wrong"),
        };
        Self::new(status, word, title).because(error.to_string())
    }

    pub(crate) fn token_taken() -> Self {
        Self::new(StatusCode::CONFLICT, "taken", "the name is taken")
            .because(Error::TokenTaken.to_string())
    }

    pub(crate) fn account_not_changed(error: &Error) -> Self {
        if let Error::People(people::FileError::Refused(error)) = error {
            return Self::account_refused(error);
        }
        let title = "the file could not be changed";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "not-written", title)
            .because(page::safe::with_causes(error))
    }

    pub(crate) fn audit_unread(error: &audit::Error) -> Self {
        let title = "the audit could not be read";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "audit-unread", title)
            .because(page::safe::with_causes(error))
    }

    pub(crate) fn no_scope(scope: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "no-scope", "this credential does not permit that")
            .because(format!("it lacks the scope {scope:?}"))
    }

    pub(crate) fn is_filtered() -> Self {
        Self::new(StatusCode::FORBIDDEN, "no-scope", "this credential does not permit that")
            .because("it sees a part of the sessions, and SQL is asked of all of them")
    }

    pub(crate) fn is_of_all() -> Self {
        Self::new(StatusCode::FORBIDDEN, "no-scope", "this credential does not permit that")
            .because("it sees a part of the sessions, and this is of the whole volume")
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "there is nothing of this name").because(what)
    }

    pub(crate) fn wrong_method(allow: &str) -> Self {
        let title = "this method is not answered here";
        let mut problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", title);
        problem.0.allow = HeaderValue::from_str(allow).ok();
        problem
    }

    pub(crate) fn wrong_parameter(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "wrong-parameter", "a parameter is wrong").because(why)
    }

    pub(crate) fn wrong_query(error: &query::Error, text: &str) -> Self {
        let problem = Self::new(StatusCode::BAD_REQUEST, "wrong-query", "the query is wrong");
        let mut problem = problem.because(error.to_string());
        problem.0.query = Some(InQuery {
            at: error.at,
            suggestion: error.suggestion.clone(),
            shown: error.render(text),
        });
        problem
    }

    pub(crate) fn too_long(what: &str) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-long", "the request is too long")
            .because(what)
    }

    pub(crate) fn busy() -> Self {
        let title = "too many requests are being answered";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", title)
            .because("the queue is full, or the wait in it was too long")
    }

    /// Of one credential; others are answered meanwhile.
    pub(crate) fn own_queue_full() -> Self {
        let title = "too many requests of this credential wait";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "own-queue-full", title)
            .because("wait for the answers of earlier ones before you ask more")
    }

    pub(crate) fn no_worker() -> Self {
        let title = "no process could be started for this request";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no-worker", title)
    }

    pub(crate) fn no_audit() -> Self {
        let title = "the line of this request could not be written to the audit";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no-audit", title)
            .because("nothing is answered until that is possible; the log says why it is not")
    }

    /// What changes something is not to be asked again.
    pub(crate) fn no_audit_of_change() -> Self {
        let title = "the change may have been made, and its line could not be written to the audit";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "audit-cut", title)
            .because("the audit has that it was begun; the log says why it has no more")
    }

    pub(crate) fn worker_ended() -> Self {
        let title = "the process for this request ended before its answer";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "worker-ended", title)
    }

    pub(crate) fn too_late() -> Self {
        let title = "the time of this request is over";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "too-late", title)
    }

    pub(crate) fn not_tagged(error: &tags::Error) -> Self {
        let (status, word, title) = if matches!(error, tags::Error::Full(_)) {
            (StatusCode::INSUFFICIENT_STORAGE, "tags-full", "the file of tags is full")
        } else {
            let title = "the file could not be changed";
            (StatusCode::INTERNAL_SERVER_ERROR, "not-written", title)
        };
        Self::new(status, word, title).because(page::safe::with_causes(error))
    }

    /// Why nothing becomes of a request for an extract.
    pub(crate) fn of_request(error: &approvals::Error) -> Self {
        use approvals::{Error as Wrong, Refused as Over};
        let (status, word, title) = match error {
            Wrong::Unknown => return Self::not_found("no request that you may see has this id"),
            Wrong::Full => {
                let title = "the file of requests is full";
                (StatusCode::INSUFFICIENT_STORAGE, "requests-full", title)
            }
            Wrong::TooMany => {
                (StatusCode::CONFLICT, "too-many", "you have too many requests that are open")
            }
            Wrong::Refused(Over::OnePerson) => {
                (StatusCode::FORBIDDEN, "same-person", "somebody else has to approve this")
            }
            Wrong::Refused(Over::NotApproved) => return Self::not_approved(&error.to_string()),
            Wrong::Refused(Over::Twice) => {
                (StatusCode::CONFLICT, "approved-before", "the request was approved before")
            }
            Wrong::Refused(_) => (StatusCode::GONE, "request-over", "the request is over"),
            _ => {
                let title = "the file could not be changed";
                (StatusCode::INTERNAL_SERVER_ERROR, "not-written", title)
            }
        };
        Self::new(status, word, title).because(page::safe::with_causes(error))
    }

    fn not_approved(why: &str) -> Self {
        let title = "nobody who counts has approved the request";
        Self::new(StatusCode::FORBIDDEN, "not-approved", title).because(why)
    }

    /// Of a request whose approver was revoked since.
    pub(crate) fn approver_is_gone() -> Self {
        Self::not_approved("who approved it may not approve any more: ask again")
    }

    pub(crate) fn job_is_over() -> Self {
        Self::new(StatusCode::CONFLICT, "job-ended", "the job has ended")
    }

    pub(crate) fn hold_failed(why: &str) -> Self {
        let title = "the folder of holds cannot be used";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "hold-failed", title).because(why)
    }

    /// It is tried again every few seconds.
    pub(crate) fn unread_volume(name: &str) -> Self {
        let title = "the volume cannot be read";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unreadable", title)
            .because(format!("{name} is not there, or has no superblock; it is tried again"))
    }

    pub(crate) fn refused(refused: Refused) -> Self {
        let (status, word, title) = match refused.why {
            Why::Wrong => (StatusCode::BAD_REQUEST, "wrong-query", "the query is wrong"),
            Why::Full => {
                let title = "the packets do not fit into the folder of holds";
                (StatusCode::INSUFFICIENT_STORAGE, "holds-full", title)
            }
            Why::Unkept => return Self::hold_failed(&refused.detail),
            Why::Locked => {
                let title = "the volume is encrypted, and the service has no key that opens it";
                (StatusCode::CONFLICT, "no-key", title)
            }
            Why::MovedOn => {
                let title = "the extract cannot go on where it was broken off";
                (StatusCode::CONFLICT, "moved-on", title)
            }
            Why::Damaged => {
                (StatusCode::INTERNAL_SERVER_ERROR, "damaged", "the volume is too damaged")
            }
            Why::Undecoded => {
                let title = "the packets cannot be decoded";
                (StatusCode::INTERNAL_SERVER_ERROR, "not-decoded", title)
            }
            Why::Unreadable => {
                (StatusCode::INTERNAL_SERVER_ERROR, "unreadable", "the volume cannot be read")
            }
        };
        Self::new(status, word, title).because(refused.detail)
    }

    pub(crate) fn reply(&self) -> Reply {
        let json = page::safe::json_pretty(self);
        let mut reply = hyper::Response::new(Body::text(json));
        let status = self.status();
        *reply.status_mut() = status;
        let headers = reply.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer realm=\"wirespool\"");
            headers.insert(WWW_AUTHENTICATE, bearer);
        }
        if [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&status) {
            headers.insert(RETRY_AFTER, RETRY_AFTER_S);
        }
        if let Some(seconds) = self.0.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(allow) = self.0.allow.clone() {
            headers.insert(ALLOW, allow);
        }
        reply
    }
}
