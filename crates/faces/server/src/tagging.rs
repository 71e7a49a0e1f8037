//! Tags over the network: which a credential sees, and how they are made and removed.
//!
//! A credential with a filter tags the sessions that it sees, and sees the tags that were made with
//! the same filter.

use std::sync::Arc;

use ::tags::{OfSession, Tag, TagList, Tagged, Tags, Wanted};
use host::SystemClock;
use hyper::header::HeaderMap;
use interface::{JSON, Matter, NDJSON};
use questions::{TagBy, TagWanted, What};
use units::number::to_u64;
use units::{Clock as _, hex};

use crate::access::Caller;
use crate::body::{Body, Reply, reply};
use crate::given::Given;
use crate::problem::Problem;
use crate::service::Service;
use crate::{accept, checked};

/// Sessions that are tagged at a time.
const SESSIONS_MAX: u64 = 1000;
/// Characters of a tag.
const TAG_MAX: usize = 200;
/// Tags that are listed, if the request does not say how many.
const LISTED: u64 = 1000;
const LISTED_MAX: u64 = 10_000;
/// More than the lines of so many sessions have.
const LINES_BYTES_MAX: usize = 8 << 20;

/// Answers what is asked about tags.
pub(crate) async fn answer(
    service: &Arc<Service>,
    (caller, headers): (&Caller, &HeaderMap),
    (what, id, given): (Matter, &str, &Given),
) -> Result<Reply, Problem> {
    let why = "this service keeps no tags (--tags-file)";
    let tags = service.tags.clone().ok_or_else(|| Problem::not_found(why))?;
    match what {
        Matter::AddTags => add(service, caller, (tags, given)).await,
        Matter::RemoveTag => remove(caller, tags, id).await,
        _ => list(service, (caller, headers), (&tags, given)),
    }
}

fn may_see(caller: &Caller, tag: &Tag) -> bool {
    caller.filter.is_none() || caller.filter == tag.filter
}

fn list(
    service: &Service,
    (caller, headers): (&Caller, &HeaderMap),
    (tags, given): (&Tags, &Given),
) -> Result<Reply, Problem> {
    let named = given.text("volume").map(|name| service.volume(Some(name))).transpose()?;
    let limit = given.at_most("limit", LISTED, LISTED_MAX)?;
    let wanted = Wanted {
        session: given.text("session"),
        text: given.text("tag"),
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let is_of = |tag: &Tag| named.is_none_or(|volume| volume.id() == tag.volume_id);
    let listed = tags.list(wanted, &|tag| is_of(tag) && may_see(caller, tag));
    if accept::wanted_of(headers, &[JSON, NDJSON]) == NDJSON {
        let lines: String = listed.tags.iter().map(page::safe::json_line).collect();
        return Ok(reply(NDJSON, Body::text(lines)));
    }
    let said = TagList {
        cut_by: (listed.count > to_u64(listed.tags.len())).then_some("limit"),
        tags: listed.tags,
        count: listed.count,
        count_most: to_u64(Tags::MOST),
    };
    Ok(reply(JSON, Body::text(page::safe::json_pretty(&said))))
}

/// What says which sessions are tagged, and with what.
fn asked(given: &Given, now_ns: i64) -> Result<TagBy, Problem> {
    let (event, query, tag) = (given.text("event"), given.text("query"), given.text("tag"));
    let severity = given.number("severity")?;
    match (event, query, tag) {
        (Some(event), None, None) if severity.is_none() => {
            let is_short = event.len() <= checked::QUERY_BYTES_MAX;
            let why = "an event has at most 32 KiB";
            is_short.then(|| TagBy::Event(event.to_owned())).ok_or_else(|| Problem::too_long(why))
        }
        (None, Some(query), Some(tag)) => {
            checked::checked(query, now_ns)?;
            let severity = severity.map(u8::try_from).transpose();
            let severity =
                severity.map_err(|_| Problem::wrong_parameter("severity is 1 to 255"))?;
            let tag = tag.trim();
            if tag.is_empty() || tag.chars().count() > TAG_MAX {
                return Err(Problem::wrong_parameter("a tag has 1 to 200 characters"));
            }
            Ok(TagBy::Query { query: query.to_owned(), tag: tag.to_owned(), severity })
        }
        _ => Err(Problem::wrong_parameter("give event alone, or query and tag")),
    }
}

async fn add(
    service: &Arc<Service>,
    caller: &Caller,
    (tags, given): (Arc<Tags>, &Given),
) -> Result<Reply, Problem> {
    let now_ns = SystemClock.realtime().0;
    let by = asked(given, now_ns)?;
    let volume = service.volume(given.text("volume"))?;
    let filter = caller.filter.clone();
    let wanted = TagWanted { by, filter, now_ns, sessions_max: SESSIONS_MAX };
    let sees_ns = checked::seen_times(caller.filter.as_deref())?;
    let question = service.question(volume, What::Tag(wanted), sees_ns);
    let running = service.workers.start(&caller.name, &question).await?;
    let (text, answered) = running.whole(LINES_BYTES_MAX).await?;
    let text = String::from_utf8(text).map_err(|_| Problem::worker_ended())?;
    let tag = |line: &str| {
        let of: OfSession = serde_json::from_str(line).map_err(|_| Problem::worker_ended())?;
        let id = host::random_bytes::<16>().map_err(|_| Problem::no_worker())?;
        Ok(Tag {
            id: hex(&id),
            of,
            volume_id: volume.id().to_owned(),
            by: caller.name.clone(),
            made_ns: now_ns,
            filter: caller.filter.clone(),
        })
    };
    let made = text.lines().map(tag).collect::<Result<Vec<Tag>, Problem>>()?;
    let kept = made.clone();
    let added = tokio::task::spawn_blocking(move || tags.add(&kept)).await;
    added.map_err(|_| Problem::worker_ended())?.map_err(|error| Problem::not_tagged(&error))?;
    let statement = answered.statement;
    let said = Tagged { count: to_u64(made.len()), tags: made, statement };
    Ok(reply(JSON, Body::text(page::safe::json_pretty(&said))))
}

async fn remove(caller: &Caller, tags: Arc<Tags>, id: &str) -> Result<Reply, Problem> {
    let (caller, id) = (caller.clone(), id.to_owned());
    let remove = move || tags.remove(&id, &|tag| may_see(&caller, tag));
    let removed = tokio::task::spawn_blocking(remove).await;
    let removed = removed.map_err(|_| Problem::worker_ended())?;
    let removed = removed.map_err(|error| Problem::not_tagged(&error))?;
    let removed = removed.ok_or_else(|| Problem::not_found("no tag of yours has this id"))?;
    Ok(reply(JSON, Body::text(page::safe::json_pretty(&removed))))
}
