//! Extracts that one credential asks for and another one approves.
//!
//! What is asked is within the filter of who asks, with the times of that moment. What is handed
//! out is that, within the filter of who takes it at the moment when it is taken, and only while
//! the credential that has approved it still may. Who may approve and has a filter sees the
//! requests that were made with the same filter.

use core::time::Duration;
use std::sync::Arc;

use approvals::{Asked, Error, Kept, Over, OverBy, Requests, Shown, State, Wanted};
use audit::FourEyes;
use host::SystemClock;
use interface::{JSON, Matter};
use manifest::CaseInfo;
use people::Scope;
use query::Query;
use questions::ExtractWanted;
use schemars::JsonSchema;
use serde::Serialize;
use units::number::to_u64;
use units::{Clock as _, Timestamp, hex};

use crate::access::Caller;
use crate::asking;
use crate::body::{Body, Reply, reply};
use crate::checked::{QUERY_BYTES_MAX, checked};
use crate::given::Given;
use crate::log::Entry;
use crate::problem::Problem;
use crate::service::Service;

/// Requests that are listed, if the request does not say how many.
const LISTED: u64 = 100;
const LISTED_MAX: u64 = 1000;
/// Seconds that something is handed out for a request: 7 days, and 30 at most.
const VALID_S: u64 = 7 * 86_400;
const VALID_S_MAX: u64 = 30 * 86_400;

/// A request to the interface about requests for extracts.
struct Asking<'a> {
    service: &'a Arc<Service>,
    caller: &'a Caller,
    requests: Arc<Requests>,
    given: &'a Given,
    entry: &'a mut Entry,
    now: Timestamp,
}

/// Answers what is asked about requests for extracts. It puts down by itself what it changes.
pub(crate) async fn answer(
    service: &Arc<Service>,
    (caller, entry): (&Caller, &mut Entry),
    (what, id, given): (Matter, &str, &Given),
) -> Result<Reply, Problem> {
    let why = "this service keeps no requests (--requests-file)";
    let requests = service.approvals.clone().ok_or_else(|| Problem::not_found(why))?;
    let now = SystemClock.realtime();
    let asking = Asking { service, caller, requests, given, entry, now };
    match what {
        Matter::AskExtract => asking.ask().await,
        Matter::Approve => asking.approve(id).await,
        Matter::EndRequest => asking.end(id).await,
        Matter::ApprovedExtract => asking.extract(id).await,
        Matter::Request => asking.one(id),
        _ => asking.list(),
    }
}

/// Whether a credential may approve what was asked, if somebody else has asked it.
fn may_approve(caller: &Caller, asked: &Asked) -> bool {
    let sees = caller.filter.is_none() || caller.filter == asked.filter;
    sees && caller.scopes.contains(&Scope::Approve)
}

fn may_see(caller: &Caller, kept: &Kept) -> bool {
    kept.asked.requester == caller.party() || may_approve(caller, &kept.asked)
}

/// Requests that a credential may see, the newest first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Requests")]
pub(crate) struct RequestList<'a> {
    requests: Vec<Shown<'a>>,
    /// How many there are, also where fewer are shown.
    count: u64,
    /// `limit`, where fewer are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["limit"]))]
    cut_by: Option<&'static str>,
}

impl Asking<'_> {
    fn list(self) -> Result<Reply, Problem> {
        let given = self.given;
        let state = match given.text("state") {
            Some(_) => Some(given.choice("state", (&State::ALL, State::Waiting), State::word)?),
            None => None,
        };
        let limit = given.at_most("limit", LISTED, LISTED_MAX)?;
        let wanted = Wanted { state, limit: usize::try_from(limit).unwrap_or(usize::MAX) };
        let listed = self.requests.list(wanted, self.now, &|kept| may_see(self.caller, kept));
        let shown: Vec<Shown<'_>> = listed.requests.iter().map(|kept| self.shown(kept)).collect();
        let cut_by = (listed.count > to_u64(shown.len())).then_some("limit");
        let said = RequestList { requests: shown, count: listed.count, cut_by };
        Ok(reply(JSON, Body::text(page::safe::json_pretty(&said))))
    }

    fn one(self, id: &str) -> Result<Reply, Problem> {
        let kept = self.find(id)?;
        Ok(self.reply(&kept))
    }

    async fn ask(mut self) -> Result<Reply, Problem> {
        let asked = self.asked()?;
        self.entry.record.is_for(of(&Kept::new(asked.clone())));
        self.begin_change().await?;
        let (requests, now) = (Arc::clone(&self.requests), self.now);
        let kept = changed(move || requests.add(&asked, now)).await?;
        Ok(self.reply(&kept))
    }

    /// What is asked, with the filter of who asks and the times of this moment.
    fn asked(&self) -> Result<Asked, Problem> {
        let (given, caller, now) = (self.given, self.caller, self.now);
        let typed = given.query();
        checked(&typed, now.0)?;
        let volume = self.service.volume(given.text("volume"))?;
        let narrowed = caller.narrowed(&typed);
        let query = Query::parse(&narrowed, now);
        let query = query.map_err(|error| Problem::wrong_query(&error, &narrowed))?.to_string();
        if query.len() > 2 * QUERY_BYTES_MAX {
            return Err(Problem::too_long("with absolute times the query has more than 64 KiB"));
        }
        let seconds = given.at_most("valid_for_s", VALID_S, VALID_S_MAX)?;
        let valid_for_ns = units::nanos(Duration::from_secs(seconds));
        let nonce = host::random_bytes::<16>().map_err(|_| Problem::no_worker())?;
        Ok(Asked {
            made_ns: now.0,
            until_ns: now.0.saturating_add(valid_for_ns),
            requester: caller.party(),
            query,
            filter: caller.filter.clone(),
            volume_id: volume.id().to_owned(),
            only_range: given.flag("only_range")? || caller.filter.is_some(),
            case: self.said("case")?.ok_or_else(|| needed("case"))?,
            purpose: self.said("purpose")?.ok_or_else(|| needed("purpose"))?,
            nonce: hex(&nonce),
        })
    }

    async fn approve(mut self, id: &str) -> Result<Reply, Problem> {
        let kept = self.find(id)?;
        self.entry.record.is_for(of(&kept));
        let note = self.said("note")?;
        let by = self.caller.party();
        kept.may_be_approved(&by, self.now).map_err(|why| Problem::of_request(&why.into()))?;
        self.begin_change().await?;
        let (requests, caller) = (Arc::clone(&self.requests), self.caller.clone());
        let (id, now) = (kept.id, self.now);
        let approve = move || {
            let sees = |kept: &Kept| may_see(&caller, kept);
            requests.approve((&id, &sees), (&by, note.as_deref()), now)
        };
        let kept = changed(approve).await?;
        self.entry.record.is_for(of(&kept));
        Ok(self.reply(&kept))
    }

    async fn end(mut self, id: &str) -> Result<Reply, Problem> {
        let kept = self.find(id)?;
        self.entry.record.is_for(of(&kept));
        let by = self.caller.party();
        let is_own = kept.asked.requester == by;
        let how = if is_own { OverBy::Withdrawn } else { OverBy::Refused };
        let over = Over { at_ns: self.now.0, by, how, note: self.said("note")? };
        kept.may_be_ended(self.now).map_err(|why| Problem::of_request(&why.into()))?;
        self.begin_change().await?;
        let (requests, caller, id) = (Arc::clone(&self.requests), self.caller.clone(), kept.id);
        let end = move || requests.end((&id, &|kept: &Kept| may_see(&caller, kept)), &over);
        let kept = changed(end).await?;
        Ok(self.reply(&kept))
    }

    async fn extract(self, id: &str) -> Result<Reply, Problem> {
        let (service, caller) = (self.service, self.caller);
        let own = caller.party();
        let kept = self.requests.find(id, &|kept| kept.asked.requester == own);
        let unknown = || Problem::not_found("no request of yours has this id");
        let kept = kept.ok_or_else(unknown)?;
        let asked = &kept.asked;
        self.entry.record.is_for(of(&kept));
        let approval = kept.is_approved(self.now);
        let approval = approval.map_err(|why| Problem::of_request(&why.into()))?;
        let may = |caller: &Caller| may_approve(caller, asked);
        if !service.credentials.still(&approval.approver, &may) {
            return Err(Problem::approver_is_gone());
        }
        let volume = service.volume(Some(&asked.volume_id))?;
        let query = within(caller, asked, self.now);
        let wanted = asking::extract_wanted(service, caller, self.given, (query, self.now.0))?;
        let mut wanted = ExtractWanted {
            case: CaseInfo {
                case: Some(asked.case.clone()),
                purpose: Some(asked.purpose.clone()),
                requester: Some(asked.requester.name.clone()),
            },
            approved: kept.named(),
            ..wanted
        };
        wanted.narrowed.whole_sessions &= !asked.only_range;
        let range = asking::range(&wanted.query);
        self.entry.record.asks(&asked.query, Some(&volume.name), range);
        asking::hand_out(service, caller, (volume, wanted), asked.query.clone()).await
    }

    fn find(&self, id: &str) -> Result<Kept, Problem> {
        let kept = self.requests.find(id, &|kept| may_see(self.caller, kept));
        kept.ok_or_else(|| Problem::of_request(&Error::Unknown))
    }

    /// A text that is given, of so many bytes at most.
    fn said(&self, name: &str) -> Result<Option<String>, Problem> {
        let text = self.given.text(name).map(str::trim).filter(|text| !text.is_empty());
        let is_short = text.is_none_or(|text| text.len() <= CaseInfo::BYTES_MAX);
        let why = || Problem::too_long("case, purpose and note have at most 1024 bytes each");
        is_short.then(|| text.map(str::to_owned)).ok_or_else(why)
    }

    /// Puts down that something is about to be changed.
    async fn begin_change(&mut self) -> Result<(), Problem> {
        let is_put_down = self.entry.record.begin_change().await;
        is_put_down.then_some(()).ok_or_else(Problem::no_audit)
    }

    fn reply(&self, kept: &Kept) -> Reply {
        reply(JSON, Body::text(page::safe::json_pretty(&self.shown(kept))))
    }

    fn shown<'k>(&'k self, kept: &'k Kept) -> Shown<'k> {
        let id = &*kept.asked.volume_id;
        let volume =
            self.service.volumes.iter().find(|volume| volume.is_read() && volume.id() == id);
        let name = volume.map_or(id, |volume| &*volume.name);
        Shown::of(kept, name, (&self.caller.party(), self.now))
    }
}

/// What is handed out: what was approved, within what the credential sees now. A filter that is the
/// same and has no relative times is in the query already.
fn within(caller: &Caller, asked: &Asked, now: Timestamp) -> String {
    let at = |filter: &str, time| Query::parse(filter, time).map(|query| query.to_string()).ok();
    let is_fixed = |filter: &str| at(filter, now) == at(filter, Timestamp(asked.made_ns));
    match &caller.filter {
        Some(filter) if caller.filter != asked.filter || !is_fixed(filter) => {
            caller.narrowed(&asked.query)
        }
        _ => asked.query.clone(),
    }
}

/// As the audit has it.
fn of(kept: &Kept) -> FourEyes {
    FourEyes {
        request: kept.id.clone(),
        case: kept.asked.case.clone(),
        purpose: kept.asked.purpose.clone(),
        requested_by: kept.asked.requester.to_string(),
        approved_by: kept.approval.as_ref().map(|approval| approval.approver.to_string()),
    }
}

fn needed(name: &str) -> Problem {
    Problem::wrong_parameter(format!("{name} is missing: say what the extract is for"))
}

/// Changes the file, where it cannot keep others waiting.
async fn changed(
    change: impl FnOnce() -> Result<Kept, Error> + Send + 'static,
) -> Result<Kept, Problem> {
    let changed = tokio::task::spawn_blocking(change).await;
    changed.map_err(|_| Problem::worker_ended())?.map_err(|error| Problem::of_request(&error))
}

#[cfg(test)]
mod tests {
    use approvals::{Party, PartyKind};

    use super::*;

    fn asked(query: &str, filter: Option<&str>) -> Asked {
        let requester =
            Party { kind: PartyKind::Token, name: "anna".to_owned(), mark: "m".to_owned() };
        Asked {
            made_ns: 1_700_000_000_000_000_000,
            until_ns: i64::MAX,
            requester,
            query: query.to_owned(),
            filter: filter.map(str::to_owned),
            volume_id: "v".to_owned(),
            only_range: false,
            case: "17".to_owned(),
            purpose: "a leak".to_owned(),
            nonce: "n".to_owned(),
        }
    }

    #[test]
    fn what_is_handed_out_is_within_what_the_credential_sees_at_that_moment() {
        let now = Timestamp(1_700_000_600_000_000_000);
        let of = |filter: Option<&str>| Caller {
            filter: filter.map(str::to_owned),
            ..Caller::default()
        };
        let fixed = asked("(port 53) and (tcp)", Some("port 53"));
        for (filter, expected) in [
            (Some("port 53"), "(port 53) and (tcp)"),
            // The filter was taken away, or is another one by now.
            (None, "(port 53) and (tcp)"),
            (Some("net 10.0.0.0/8"), "(net 10.0.0.0/8) and ((port 53) and (tcp))"),
        ] {
            assert_eq!(within(&of(filter), &fixed, now), expected);
        }
        let relative = asked("x", Some("since 7d ago"));
        assert_eq!(within(&of(Some("since 7d ago")), &relative, now), "(since 7d ago) and (x)");
        assert_eq!(within(&of(Some("tcp")), &asked("x", None), now), "(tcp) and (x)");
    }

    #[test]
    fn who_has_a_filter_approves_what_was_asked_with_the_same_one() {
        let scopes = vec![Scope::Approve];
        let of = |filter: Option<&str>| Caller {
            scopes: scopes.clone(),
            filter: filter.map(str::to_owned),
            ..Caller::default()
        };
        for (own, theirs, may) in [
            (None, None, true),
            (None, Some("tcp"), true),
            (Some("tcp"), Some("tcp"), true),
            (Some("tcp"), None, false),
            (Some("tcp"), Some("udp"), false),
        ] {
            assert_eq!(may_approve(&of(own), &asked("x", theirs)), may, "{own:?} {theirs:?}");
        }
        assert!(!may_approve(&Caller::default(), &asked("x", None)));
    }
}
