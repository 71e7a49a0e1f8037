//! Questions to volumes, and what the service says of itself.

use core::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use found::Weight;
use host::SystemClock;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use interface::{ARROW, JSON, Matter, NDJSON, PCAPNG};
use manifest::CaseInfo;
use query::{Field, Query};
use questions::{
    Behind, Cursor, DecodeWanted, ExtractWanted, Form, Narrowed, Order, PacketsWanted, RowForm,
    SessionsWanted, SortWanted, SqlWanted, SummaryWanted, Walk, What,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use session_view::ListedField;
use units::{Clock as _, Timestamp};

use crate::accept::wanted_of;
use crate::access::Caller;
use crate::body::{Body, Reply, reply};
use crate::checked::{QUERY_BYTES_MAX, checked, needs_atlas, seen_times};
use crate::given::Given;
use crate::problem::Problem;
use crate::service::{Service, Volume};
use crate::stream::{self, Framing, Wanted};
use crate::{holds, scrape};

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Sessions of a page, if the request does not say how many.
const PAGE: u64 = 100;
const PAGE_MAX: u64 = 10_000;
/// Values of a field in a summary, and how many fields it may have.
const VALUES: u64 = 10;
const VALUES_MAX: u64 = 1000;
const FIELDS_MAX: usize = 16;
/// Says what relative times of an extract count from: whoever goes on with it says the same.
const NOW: HeaderName = HeaderName::from_static("wirespool-now");
/// Packets that are shown.
const PACKETS: u64 = 1000;
const PACKETS_MAX: u64 = 10_000;

/// Answers what is asked of volumes and of the service.
pub(crate) async fn answer(
    service: &Arc<Service>,
    (caller, headers): (&Caller, &HeaderMap),
    (what, id, given): (Matter, &str, &Given),
) -> Result<Reply, Problem> {
    match what {
        Matter::Settings => Ok(reply(JSON, Body::text(service.settings.clone()))),
        Matter::Fields => Ok(reply(JSON, Body::text(fields()))),
        Matter::Volumes => volumes(service).await,
        Matter::Sessions => sessions(service, caller, given, headers).await,
        Matter::Summary => summary(service, caller, given).await,
        Matter::Packets => packets(service, caller, given).await,
        Matter::Decode => decode(service, caller, given).await,
        Matter::Extract => extract(service, caller, given).await,
        Matter::Sql => sql(service, caller, given, headers).await,
        Matter::Holds => holds::list(service, caller, given.text("volume")).await,
        Matter::Hold => hold(service, caller, given).await,
        Matter::Release => holds::release(service, caller, id).await,
        Matter::Answer => known_answer(service, caller, id),
        Matter::Manifest => manifest(service, caller, id),
        Matter::Metrics => Ok(reply(PROMETHEUS, Body::text(scrape::scrape(service).await))),
        _ => Ok(health(service, Some(caller))),
    }
}

/// The times that a query permits.
pub(crate) fn range(query: &str) -> [Option<String>; 2] {
    let parsed = (query.len() <= 2 * QUERY_BYTES_MAX)
        .then(|| Query::parse(query, SystemClock.realtime()).ok())
        .flatten();
    let Some((from, until)) = parsed.map(|query| query.time_range()) else { return [None, None] };
    let bound = |time: Timestamp, none: i64| (time.0 != none).then(|| time.to_string());
    [bound(from, i64::MIN), bound(until, i64::MAX)]
}

/// Whether the service is well, and of who has a credential why.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Health<'a> {
    ok: bool,
    #[serde(flatten)]
    why: Option<HealthWhy<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct HealthWhy<'a> {
    is_stopping: bool,
    workers_start: bool,
    audit_written: bool,
    /// Processes that answer now.
    workers: usize,
    /// Questions that wait for one.
    queue: usize,
    volumes: Vec<&'a str>,
    volumes_unread: Vec<&'a str>,
}

/// Of who has no credential whether it is well, and of others why.
pub(crate) fn health(service: &Service, caller: Option<&Caller>) -> Reply {
    let is_stopping = service.is_stopping.load(Ordering::Relaxed);
    let workers_start = service.workers.can_start();
    let audit_written = service.trail.is_well();
    let ok = !is_stopping && workers_start && service.credentials.are_known() && audit_written;
    let why = caller.map(|_| {
        let fill = service.workers.fill();
        let named = |are_unread: bool| {
            let volumes = service.volumes.iter();
            let volumes = volumes.filter(move |volume| !are_unread || !volume.is_read());
            volumes.map(|volume| volume.name.as_str()).collect()
        };
        HealthWhy {
            is_stopping,
            workers_start,
            audit_written,
            workers: fill.running,
            queue: fill.waiting,
            volumes: named(false),
            volumes_unread: named(true),
        }
    });
    let mut reply = reply(JSON, Body::text(page::safe::json_line(&Health { ok, why })));
    if !ok {
        *reply.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
    }
    reply
}

/// What a query can ask for here.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Fields {
    fields: Vec<ListedField>,
}

fn fields() -> String {
    static TEXT: OnceLock<String> = OnceLock::new();
    let of_rows = query::FIELDS.iter().filter(|field| !field.needs_atlas());
    let text =
        || page::safe::json_pretty(&Fields { fields: of_rows.map(ListedField::of).collect() });
    TEXT.get_or_init(text).clone()
}

async fn volumes(service: &Arc<Service>) -> Result<Reply, Problem> {
    let mut volumes = Vec::new();
    for volume in &service.volumes {
        let state = service.state(volume).await;
        // What could not be read so far has no id.
        let (name, id) = (&volume.name, volume.is_read().then(|| volume.id()));
        volumes.push(match state {
            Ok(Value::Object(mut state)) => {
                state.insert("name".to_owned(), name.clone().into());
                Value::Object(state)
            }
            Ok(_) => json!({"name": name, "volume_id": id}),
            Err(problem) => json!({"name": name, "volume_id": id, "problem": problem}),
        });
    }
    Ok(reply(JSON, Body::text(page::safe::json_pretty(&json!({ "volumes": volumes })))))
}

async fn sessions(
    service: &Arc<Service>,
    caller: &Caller,
    given: &Given,
    headers: &HeaderMap,
) -> Result<Reply, Problem> {
    let query = given.query();
    let volume = service.volume(given.text("volume"))?;
    let order = given.choice("order", (&Order::ALL, Order::Oldest), Order::word)?;
    let walk = Walk { volume_id: volume.id().to_owned(), query: query.clone() };
    let after = given.text("cursor").map(|text| {
        let after = Cursor::from_text(text, &walk);
        let after = after.filter(|it| given.text("order").is_none() || it.order == order);
        let why = "this cursor is of another query, volume or order: begin without a cursor";
        after.ok_or_else(|| Problem::wrong_parameter(why))
    });
    let after = after.transpose()?;
    let now_ns = now_for(caller, after.as_ref().map(|after| after.now_ns));
    checked(&query, now_ns)?;
    let are_lines = wanted_of(headers, &[JSON, NDJSON]) == NDJSON;
    let order = after.as_ref().map_or(order, |after| after.order);
    let sort = given.text("sort").map(sort).transpose()?;
    if sort.is_some() && (!are_lines || given.text("order").is_some() || after.is_some()) {
        let why = "sort is for lines (Accept: application/x-ndjson), without order and cursor";
        return Err(Problem::wrong_parameter(why));
    }
    // As of `find --limit 0`: the statement alone. A page of none would have no next one.
    let is_none_wanted = are_lines && given.text("limit") == Some("0");
    // Those that come last are held until the first is known.
    let limit = match (are_lines, order) {
        _ if is_none_wanted => Some(0),
        (true, Order::Oldest) => given.number("limit")?,
        (true, Order::Newest) => Some(given.at_most("limit", PAGE_MAX, PAGE_MAX)?),
        (false, _) => Some(given.at_most("limit", PAGE, PAGE_MAX)?),
    };
    let bytes_max = service.bounds.answer_bytes;
    let asked = caller.narrowed(&query);
    let wanted = SessionsWanted { query: asked, now_ns, order, sort, after, limit, bytes_max };
    let framing = if are_lines { Framing::AsIs } else { Framing::Elements("sessions") };
    let form = (framing, if are_lines { NDJSON } else { JSON });
    ask(service, caller, (volume, What::Sessions(wanted)), (query, form)).await
}

/// What relative times count from, as a client has got it with an earlier answer. It may have made
/// it up: the times of a filter count from the clock of this machine.
fn now_for(caller: &Caller, said_ns: Option<i64>) -> i64 {
    said_ns.filter(|_| caller.filter.is_none()).unwrap_or_else(|| SystemClock.realtime().0)
}

/// An order by a field: `FIELD`, `FIELD:asc` or `FIELD:desc`.
fn sort(text: &str) -> Result<SortWanted, Problem> {
    let (name, is_descending) = match text.rsplit_once(':') {
        Some((name, "desc")) => (name, true),
        Some((name, "asc")) => (name, false),
        Some(_) => return Err(Problem::wrong_parameter("sort is FIELD, FIELD:asc or FIELD:desc")),
        None => (text, false),
    };
    Ok(SortWanted { field: groupable(name)?, is_descending })
}

/// Has a worker ask the volume, whose answer goes out in this form.
async fn ask(
    service: &Arc<Service>,
    caller: &Caller,
    (volume, what): (&Volume, What),
    (query, (framing, media_type)): (String, (Framing, &'static str)),
) -> Result<Reply, Problem> {
    let sees_ns = seen_times(caller.filter.as_deref())?;
    let question = service.question(volume, what, sees_ns);
    let volume_id = volume.id().to_owned();
    let wanted = Wanted { question, volume_id, query, framing, media_type };
    stream::begin(service, caller, wanted).await
}

async fn sql(
    service: &Arc<Service>,
    caller: &Caller,
    given: &Given,
    headers: &HeaderMap,
) -> Result<Reply, Problem> {
    // What it may not see could be asked for in too many ways.
    if caller.filter.is_some() {
        return Err(Problem::is_filtered());
    }
    let text = given.query();
    if text.len() > QUERY_BYTES_MAX {
        return Err(Problem::too_long("a query has at most 32 KiB"));
    }
    let media_type = wanted_of(headers, &[JSON, NDJSON, ARROW]);
    let rows_max = match media_type {
        JSON => Some(given.at_most("limit", PAGE_MAX, PAGE_MAX)?),
        _ => given.number("limit")?,
    };
    let volume = service.volume(given.text("volume"))?;
    let form = if media_type == ARROW { RowForm::Arrow } else { RowForm::Lines };
    let bytes_max = service.bounds.answer_bytes;
    let wanted = SqlWanted { text: text.clone(), form, rows_max, bytes_max };
    let framing = if media_type == JSON { Framing::Elements("rows") } else { Framing::AsIs };
    ask(service, caller, (volume, What::Sql(wanted)), (text, (framing, media_type))).await
}

async fn summary(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    let (query, now_ns) = asked_now(given)?;
    let names = given.text("fields").unwrap_or_default().split(',').filter(|it| !it.is_empty());
    let fields: Vec<String> = names.map(groupable).collect::<Result<_, _>>()?;
    if fields.len() > FIELDS_MAX {
        return Err(Problem::wrong_parameter("fields has at most 16 names"));
    }
    let volume = service.volume(given.text("volume"))?;
    let wanted = SummaryWanted {
        query: caller.narrowed(&query),
        now_ns,
        fields,
        limit: usize::try_from(given.at_most("limit", VALUES, VALUES_MAX)?).unwrap_or(0),
        by: given.choice("by", (&Weight::ALL, Weight::Bytes), Weight::word)?,
        series: given.text("series").filter(|name| !name.is_empty()).map(groupable).transpose()?,
        over_time: given.choice("over_time", (&Weight::ALL, Weight::Bytes), Weight::word)?,
    };
    let form = (Framing::Members, JSON);
    ask(service, caller, (volume, What::Summary(wanted)), (query, form)).await
}

/// The query, which is one, and what its relative times count from.
fn asked_now(given: &Given) -> Result<(String, i64), Problem> {
    let (query, now_ns) = (given.query(), SystemClock.realtime().0);
    checked(&query, now_ns)?;
    Ok((query, now_ns))
}

/// The field of this name, if sessions can be summed up by it here.
fn groupable(name: &str) -> Result<String, Problem> {
    match Field::find(name) {
        Some(field) if field.needs_atlas() => Err(needs_atlas(field)),
        Some(field) => Ok(field.name.to_owned()),
        None => {
            let meant = query::did_you_mean(Field::meant_by(name));
            Err(Problem::wrong_parameter(format!("{name:?} is no field{meant}")))
        }
    }
}

async fn packets(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    let (query, wanted) = packets_wanted(caller, given)?;
    let volume = service.volume(given.text("volume"))?;
    let form = (Framing::Elements("packets"), JSON);
    ask(service, caller, (volume, What::Packets(wanted)), (query, form)).await
}

/// The query, and the packets of its sessions that are shown.
fn packets_wanted(caller: &Caller, given: &Given) -> Result<(String, PacketsWanted), Problem> {
    let (query, now_ns) = asked_now(given)?;
    let packets_max = given.at_most("limit", PACKETS, PACKETS_MAX)?;
    let only_range = caller.filter.is_some();
    let asked = caller.narrowed(&query);
    Ok((query, PacketsWanted { query: asked, now_ns, only_range, packets_max }))
}

/// The same, for another program, where the service was given one.
async fn decode(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    let why = "this service has no program that decodes packets (--tshark)";
    let program = service.tshark.clone().ok_or_else(|| Problem::not_found(why))?;
    let (query, mut packets) = packets_wanted(caller, given)?;
    let number = given.number_to("packet", PACKETS_MAX)?;
    // Those behind it are not needed.
    packets.packets_max = number.map_or(packets.packets_max, |it| it.min(packets.packets_max));
    let volume = service.volume(given.text("volume"))?;
    let wanted = DecodeWanted { packets, number, program };
    let form = (Framing::Members, JSON);
    ask(service, caller, (volume, What::Decode(wanted)), (query, form)).await
}

async fn extract(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    let query = given.query();
    let said_ns = given.number("now_ns")?.and_then(|now_ns| i64::try_from(now_ns).ok());
    let now_ns = now_for(caller, said_ns);
    checked(&query, now_ns)?;
    let volume = service.volume(given.text("volume"))?;
    let wanted = extract_wanted(service, caller, given, (caller.narrowed(&query), now_ns))?;
    hand_out(service, caller, (volume, wanted), query).await
}

/// An extract of a query that was checked, narrowed by what a client asks besides.
pub(crate) fn extract_wanted(
    service: &Service,
    caller: &Caller,
    given: &Given,
    (query, now_ns): (String, i64),
) -> Result<ExtractWanted, Problem> {
    let most = service.bounds.answer_bytes;
    Ok(ExtractWanted {
        query,
        now_ns,
        form: Form::Pcapng,
        narrowed: narrowed(caller, given)?,
        packets_max: given.number("limit_packets")?,
        bytes_max: Some(given.number("limit_bytes")?.map_or(most, |bytes| bytes.min(most))),
        behind: behind(given)?,
        case: CaseInfo::default(),
        approved: None,
    })
}

/// Has a worker take packets, which go out as they come.
pub(crate) async fn hand_out(
    service: &Arc<Service>,
    caller: &Caller,
    (volume, wanted): (&Volume, ExtractWanted),
    query: String,
) -> Result<Reply, Problem> {
    let now_ns = wanted.now_ns;
    let form = (Framing::AsIs, PCAPNG);
    let mut reply =
        ask(service, caller, (volume, What::Extract(Box::new(wanted))), (query, form)).await?;
    reply.headers_mut().insert(NOW, HeaderValue::from(now_ns));
    Ok(reply)
}

/// Which packets of the sessions; a filter leaves those in its times.
fn narrowed(caller: &Caller, given: &Given) -> Result<Narrowed, Problem> {
    let payload = given.pattern("payload")?.map(str::to_owned);
    let packet_filter = given.filled("packet_filter")?.map(str::to_owned);
    let only_range = given.flag("only_range")?;
    let whole_sessions = given.flag("whole_sessions")?;
    let around_ms = given.number("around_ms")?;
    let is_filtered = caller.filter.is_some();
    if is_filtered && (whole_sessions || around_ms.is_some()) {
        let why = "around_ms and whole_sessions reach beyond what this credential sees";
        return Err(Problem::wrong_parameter(why));
    }
    if whole_sessions && (only_range || around_ms.is_some()) {
        let why = "whole_sessions goes with neither only_range nor around_ms";
        return Err(Problem::wrong_parameter(why));
    }
    // A pattern chooses among packets, and only with that word among sessions.
    let is_whole = whole_sessions || (payload.is_none() && !only_range);
    Ok(Narrowed {
        whole_sessions: is_whole && !is_filtered,
        sessions_max: given.number("limit")?,
        around_ms,
        packet_filter,
        payload,
        comments: given.flag("comments")?,
    })
}

/// What a client has of the extract already.
fn behind(given: &Given) -> Result<Option<Behind>, Problem> {
    let why = "offset and sha256 belong together: so many bytes of an extract, and their hash";
    match (given.number("offset")?, given.text("sha256")) {
        (None, None) => Ok(None),
        (Some(bytes), Some(digits)) => {
            let hash: Option<[u8; 32]> = units::unhex(digits);
            let hash = hash.ok_or_else(|| Problem::wrong_parameter(why))?;
            Ok(Some(Behind { bytes, sha256: units::hex(&hash) }))
        }
        _ => Err(Problem::wrong_parameter(why)),
    }
}

async fn hold(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    given.written_query()?;
    let (query, now_ns) = asked_now(given)?;
    let volume = service.volume(given.text("volume"))?;
    let only_range = given.flag("only_range")?;
    let wanted = holds::wanted((service, caller), &query, (now_ns, only_range))?;
    let form = (Framing::Members, JSON);
    ask(service, caller, (volume, What::Hold(wanted)), (query, form)).await
}

fn known_answer(service: &Service, caller: &Caller, id: &str) -> Result<Reply, Problem> {
    let answer = service.answers.of(id, &caller.owner());
    let answer = answer.ok_or_else(|| Problem::not_found("no answer of yours has this id"))?;
    Ok(reply(JSON, Body::text(page::safe::json_pretty(&answer))))
}

fn manifest(service: &Service, caller: &Caller, id: &str) -> Result<Reply, Problem> {
    let answer = service.answers.of(id, &caller.owner());
    let manifest = answer.and_then(|answer| answer.manifest);
    let why = "no extract of yours has this id, it is still going, or its manifest is too long";
    let manifest = manifest.ok_or_else(|| Problem::not_found(why))?;
    Ok(reply(JSON, Body::text(manifest)))
}
