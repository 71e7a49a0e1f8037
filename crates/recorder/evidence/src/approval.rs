//! Four eyes: somebody asks for an extract, and somebody else approves it. Both are sealed and
//! signed texts, and an extract names both.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Timestamp, hex};

use crate::case::CaseInfo;
use crate::key::PublicKey;
use crate::maker::Maker;
use crate::seal::{SealError, SealTextError, Signer, split_sealed};
use crate::trusted::{TrustedKeys, fits_pattern};

/// Version of the requests and approvals that are written.
pub const APPROVAL_VERSION: u16 = 1;
/// The name of an approval: that of its request with this behind it.
pub const APPROVAL_SUFFIX: &str = ".approved";

/// What somebody asks for, before it is sealed. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RequestForm {
    /// [`APPROVAL_VERSION`].
    pub request_version: u16,
    /// When it was made, ns since 1970.
    pub made_ns: i64,
    /// Who made it, where and with what.
    pub made_by: Maker,
    /// The sessions that are asked for; its times are absolute.
    pub query: String,
    /// What it is for, and who asks.
    #[serde(flatten)]
    pub case: CaseInfo,
    /// After this time nothing is handed out for it any more.
    pub valid_until_ns: i64,
}

/// That somebody approves a request, before it is sealed. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ApprovalForm {
    /// [`APPROVAL_VERSION`].
    pub approval_version: u16,
    /// When it was approved, ns since 1970.
    pub made_ns: i64,
    /// Who approved it, where and with what.
    pub made_by: Maker,
    /// BLAKE3 of the whole request.
    pub request_blake3: String,
    /// What the approver says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A request that was approved by somebody else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Approved {
    /// The request.
    pub request: RequestForm,
    /// What manifests say of it.
    pub named: ApprovedForm,
}

/// Who asked and who approved, as a manifest has it. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ApprovedForm {
    /// BLAKE3 of the whole request.
    pub request_blake3: String,
    /// BLAKE3 of the whole approval.
    pub approval_blake3: String,
    /// The key of who asked, and its name where it is known.
    pub requested_by: String,
    /// The same of who approved.
    pub approved_by: String,
}

/// Why nothing is handed out for a request.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// The seal of one of them cannot be read.
    #[error("the {0} cannot be checked: {1}")]
    Text(&'static str, #[source] SealTextError),
    /// The seal of one of them is wrong, or of nobody who counts.
    #[error("the {0}: {1}")]
    Seal(&'static str, #[source] SealError),
    /// Not JSON of this shape.
    #[error("the {0} is none: {1}")]
    Json(&'static str, #[source] serde_json::Error),
    /// Of a later version.
    #[error("the {0} has version {1}, known is 1")]
    Version(&'static str, u16),
    /// The key that signed one of them is not valid at that time.
    #[error("the {0} is signed with a key that was not valid then")]
    OutOfTime(&'static str),
    /// The approval is of another request.
    #[error("it was another request that was approved")]
    OtherRequest,
    /// One person did both.
    #[error("{0} both asked and approved: that takes two")]
    OnePerson(String),
    /// It is too late.
    #[error("the request ended at {0}: ask again")]
    Over(Timestamp),
}

/// Checks that a request is signed by somebody who counts and approved by somebody else who does.
///
/// # Errors
/// When it is not, or not any more.
pub fn check_approval(
    request: &str,
    approval: &str,
    keys: &TrustedKeys,
    now: Timestamp,
) -> Result<Approved, ApprovalError> {
    let (of_request, of_approval) = ("request", "approval");
    let asked = read_request(request)?;
    let approved: ApprovalForm =
        serde_json::from_str(approval).map_err(|error| ApprovalError::Json(of_approval, error))?;
    if approved.approval_version != APPROVAL_VERSION {
        return Err(ApprovalError::Version(of_approval, approved.approval_version));
    }
    let requester = signer_of(of_request, (request, asked.made_ns), keys)?;
    let second = signer_of(of_approval, (approval, approved.made_ns), keys)?;
    let blake3 = |text: &str| hex(blake3::hash(text.as_bytes()).as_bytes());
    if approved.request_blake3 != blake3(request) {
        return Err(ApprovalError::OtherRequest);
    }
    if requester.key == second.key || shares_a_name(&requester, &second) {
        return Err(ApprovalError::OnePerson(name_of(&requester)));
    }
    asked.check_time(now)?;
    let named = ApprovedForm {
        request_blake3: blake3(request),
        approval_blake3: blake3(approval),
        requested_by: name_of(&requester),
        approved_by: name_of(&second),
    };
    Ok(Approved { request: asked, named })
}

/// Checks a request before somebody consents to it with the key `own`: it is signed, by whomever
/// else, is as it was when it was signed, and has not ended.
///
/// # Errors
/// When nothing could be handed out for it.
pub fn check_request(
    text: &str,
    own: &PublicKey,
    now: Timestamp,
) -> Result<RequestForm, ApprovalError> {
    let request = read_request(text)?;
    let signer = signed_by("request", text, &TrustedKeys::default())?;
    if signer.key == *own {
        return Err(ApprovalError::OnePerson(name_of(&signer)));
    }
    request.check_time(now).map(|()| request)
}

impl RequestForm {
    fn check_time(&self, now: Timestamp) -> Result<(), ApprovalError> {
        let until = Timestamp(self.valid_until_ns);
        if until < now { Err(ApprovalError::Over(until)) } else { Ok(()) }
    }
}

/// A request, whoever signed it.
fn read_request(text: &str) -> Result<RequestForm, ApprovalError> {
    let request: RequestForm =
        serde_json::from_str(text).map_err(|error| ApprovalError::Json("request", error))?;
    match request.request_version {
        APPROVAL_VERSION => Ok(request),
        other => Err(ApprovalError::Version("request", other)),
    }
}

/// Who signed a text, which is as it was then.
fn signed_by(what: &'static str, text: &str, keys: &TrustedKeys) -> Result<Signer, ApprovalError> {
    let (body, seal) = split_sealed(text).map_err(|error| ApprovalError::Text(what, error))?;
    let signer = seal.check(body.as_bytes(), keys);
    let signer = signer.map_err(|error| ApprovalError::Seal(what, error))?;
    signer.ok_or(ApprovalError::Seal(what, SealError::Unsigned))
}

fn signer_of(
    what: &'static str,
    (text, made_ns): (&str, i64),
    keys: &TrustedKeys,
) -> Result<Signer, ApprovalError> {
    let signer = signed_by(what, text, keys)?;
    if !signer.is_trusted() {
        return Err(ApprovalError::Seal(what, SealError::OtherKey));
    }
    if signer.is_out_of_time(Timestamp(made_ns)) {
        return Err(ApprovalError::OutOfTime(what));
    }
    Ok(signer)
}

/// Somebody may have several keys under one name, and a principal may be a pattern that fits it
/// (`ssh-keygen(1)`, ALLOWED SIGNERS).
fn shares_a_name(one: &Signer, other: &Signer) -> bool {
    let names = |signer: &Signer| -> Vec<String> {
        let name = signer.trusted.as_ref().and_then(|trusted| trusted.name.as_deref());
        let names = name.unwrap_or_default().split(',').map(|it| it.trim().to_lowercase());
        names.filter(|name| !name.is_empty()).collect()
    };
    let theirs = names(other);
    let fits = |one: &str, other: &str| {
        fits_pattern(one.as_bytes(), other.as_bytes())
            || fits_pattern(other.as_bytes(), one.as_bytes())
    };
    names(one).iter().any(|name| theirs.iter().any(|other| fits(name, other)))
}

fn name_of(signer: &Signer) -> String {
    let key = hex(&signer.key.0);
    match signer.trusted.as_ref().and_then(|trusted| trusted.name.as_deref()) {
        Some(name) => format!("{name} ({key})"),
        None => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SigningKey;
    use crate::seal::{AFTER_SEAL, BEFORE_SEAL, Seal, SealForm};

    fn sealed(form: &impl Serialize, key: &SigningKey) -> String {
        let text = serde_json::to_string_pretty(form).unwrap();
        let body = text.strip_suffix("\n}").unwrap();
        let seal = SealForm::new(&Seal::of(body.as_bytes(), Some(key)));
        format!("{body}{BEFORE_SEAL}{}{AFTER_SEAL}", serde_json::to_string(&seal).unwrap())
    }

    fn request() -> RequestForm {
        let query = "host 10.0.0.1".to_owned();
        RequestForm { request_version: 1, query, valid_until_ns: 100, ..RequestForm::default() }
    }

    fn approval(request: &str) -> ApprovalForm {
        let request_blake3 = hex(blake3::hash(request.as_bytes()).as_bytes());
        ApprovalForm { approval_version: 1, request_blake3, ..ApprovalForm::default() }
    }

    fn trusted(keys: &[(&SigningKey, &str)]) -> TrustedKeys {
        let line = |(key, name): &(&SigningKey, &str)| {
            use base64::Engine as _;
            let mut blob = vec![0, 0, 0, 11];
            blob.extend(b"ssh-ed25519");
            blob.extend([0, 0, 0, 32]);
            blob.extend(key.public().0);
            let blob = base64::engine::general_purpose::STANDARD.encode(blob);
            format!("{name} ssh-ed25519 {blob}\n")
        };
        TrustedKeys::parse(&keys.iter().map(line).collect::<String>()).unwrap()
    }

    #[test]
    fn a_request_says_everything_under_names_that_stay() {
        let [program, host, user] = ["wirespool 1", "h", "u"].map(str::to_owned);
        let words = |words: &str| Some(words.to_owned());
        let case = CaseInfo { case: words("7"), purpose: words("test"), requester: words("me") };
        let made_by = Maker { program, host, user, called_by: None };
        let request = RequestForm { made_ns: 5, made_by, case, ..request() };
        let said = concat!(
            r#"{"request_version":1,"made_ns":5,"#,
            r#""made_by":{"program":"wirespool 1","host":"h","user":"u"},"query":"host 10.0.0.1","#,
            r#""case":"7","purpose":"test","requester":"me","valid_until_ns":100}"#,
        );
        assert_eq!(serde_json::to_string(&request).unwrap(), said);
        assert_eq!(read_request(said).unwrap(), request);
    }

    #[test]
    fn two_different_people_are_needed_and_both_must_count() {
        let [alice, bob, other] = [1, 2, 3].map(|seed| SigningKey::new([seed; 32]));
        let keys = trusted(&[(&alice, "alice@lab"), (&bob, "bob@lab")]);
        let text = sealed(&request(), &alice);
        let check = |request: &str, approval: &str, keys: &TrustedKeys, now| {
            check_approval(request, approval, keys, Timestamp(now))
        };
        let by = |key| sealed(&approval(&text), key);
        let approved = check(&text, &by(&bob), &keys, 100).unwrap();
        assert_eq!(approved.request.query, "host 10.0.0.1");
        assert!(approved.named.approved_by.starts_with("bob@lab ("), "{:?}", approved.named);
        let refused = |approval: &str| check(&text, approval, &keys, 1).unwrap_err().to_string();
        assert!(refused(&by(&alice)).contains("both asked and approved"));
        assert!(refused(&by(&other)).contains("another key"));
        assert!(check(&text, &by(&bob), &keys, 101).unwrap_err().to_string().contains("ended"));
        let changed = text.replace("10.0.0.1", "10.0.0.2");
        assert!(check(&changed, &by(&bob), &keys, 1).is_err());
        let second = sealed(&RequestForm { query: "tcp".to_owned(), ..request() }, &alice);
        let error = check(&second, &by(&bob), &keys, 1).unwrap_err().to_string();
        assert!(error.contains("another request"), "{error}");
        // Two keys of one person are one person, however the list names it.
        for (one, other) in [
            ("alice@lab", "Alice@lab,ops"),
            ("alice@lab", "\"alice@lab\""),
            ("\"ops,alice a@lab\"", "alice?a@lab"),
            ("*@lab", "alice@lab"),
        ] {
            let keys = trusted(&[(&alice, one), (&bob, other)]);
            let error = check(&text, &by(&bob), &keys, 1).unwrap_err().to_string();
            assert!(error.contains("both asked and approved"), "{one} {other}: {error}");
        }
        assert!(check(&text, &by(&bob), &TrustedKeys::default(), 1).is_err(), "nobody counts");
    }

    #[test]
    fn nobody_consents_to_what_nothing_would_be_handed_out_for() {
        let [alice, bob] = [1, 2].map(|seed| SigningKey::new([seed; 32]));
        let text = sealed(&request(), &alice);
        let check = |text: &str, key: &SigningKey, now| {
            check_request(text, &key.public(), Timestamp(now)).map_err(|error| error.to_string())
        };
        assert_eq!(check(&text, &bob, 100).unwrap().query, "host 10.0.0.1");
        assert!(check(&text, &alice, 1).unwrap_err().contains("both asked and approved"));
        assert!(check(&text, &bob, 101).unwrap_err().contains("ended"));
        let changed = text.replace("10.0.0.1", "10.0.0.2");
        assert!(check(&changed, &bob, 1).unwrap_err().contains("changed"));
        let body = serde_json::to_string_pretty(&request()).unwrap();
        let body = body.strip_suffix("\n}").unwrap();
        let seal = serde_json::to_string(&SealForm::new(&Seal::of(body.as_bytes(), None))).unwrap();
        let unsigned = format!("{body}{BEFORE_SEAL}{seal}{AFTER_SEAL}");
        assert!(check(&unsigned, &bob, 1).unwrap_err().contains("not signed"));
    }
}
