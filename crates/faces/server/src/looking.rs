//! What is looked at of a volume besides its sessions, and which part of it a credential sees.
//!
//! A ring, a qualification and findings are of the whole volume, as its state and metrics are. Of
//! recordings and gaps a credential with a filter sees those in the filter's times. An inspection
//! is one of all, and not for it.

use std::sync::Arc;

use host::SystemClock;
use hyper::header::HeaderMap;
use interface::{JSON, Matter, PLAIN};
use questions::{Look, What};
use units::Clock as _;

use crate::access::Caller;
use crate::body::{Body, Reply, reply};
use crate::given::Given;
use crate::problem::Problem;
use crate::service::{Service, Volume};
use crate::{accept, checked, holds};

/// A row of cells, and rows, if the request does not say how many.
const COLUMNS: u64 = 64;
const ROWS: u64 = 32;
const SIDE_MAX: u64 = 512;
const CELLS_MAX: u64 = 16_384;
/// Holds that are marked in a ring, the newest of them.
const HOLDS_MAX: usize = 256;
/// A terminal has fewer columns.
const WIDTH_MAX: u64 = 1000;
const TEXT: &str = "text/plain; charset=utf-8";
const GAPS: u64 = 1000;
const GAPS_MAX: u64 = 10_000;
/// How long threads of a recorder are looked at.
const LOOK_MS: u64 = 1000;
const LOOK_MS_MAX: u64 = 10_000;
/// The longest document: as many gaps or cells as there may be.
const BYTES_MAX: usize = 32 << 20;

/// Answers what is looked at.
pub(crate) async fn answer(
    service: &Arc<Service>,
    (caller, headers): (&Caller, &HeaderMap),
    (what, given): (Matter, &Given),
) -> Result<Reply, Problem> {
    let volume = service.volume(given.text("volume"))?;
    let look = match what {
        Matter::Ring => ring(service, caller, (volume, given)).await?,
        Matter::Recordings => Look::Recordings,
        Matter::Gaps => gaps(caller, given)?,
        Matter::Qualification => Look::Qualification { reports: service.qualifications.clone() },
        Matter::Findings => {
            Look::Findings { for_ms: given.at_most("for_ms", LOOK_MS, LOOK_MS_MAX)? }
        }
        _ if caller.filter.is_some() => return Err(Problem::is_of_all()),
        _ => inspection(given, headers)?,
    };
    let is_text = matches!(look, Look::Inspection { as_text: true, .. });
    let sees_ns = checked::seen_times(caller.filter.as_deref())?;
    let question = service.question(volume, What::Look(look), sees_ns);
    let running = service.look_workers.start(&caller.name, &question).await?;
    let (text, _) = running.whole(BYTES_MAX).await?;
    Ok(reply(if is_text { TEXT } else { JSON }, Body::text(text)))
}

/// For a program, or for a terminal.
fn inspection(given: &Given, headers: &HeaderMap) -> Result<Look, Problem> {
    let as_text = accept::wanted_of(headers, &[JSON, PLAIN]) == PLAIN;
    let width = given.number("width")?.map(|width| width.min(WIDTH_MAX));
    let width = width.and_then(|width| usize::try_from(width).ok());
    Ok(Look::Inspection { as_text, width, has_map: given.flag("map")? })
}

async fn ring(
    service: &Arc<Service>,
    caller: &Caller,
    (volume, given): (&Volume, &Given),
) -> Result<Look, Problem> {
    let columns = given.at_most("columns", COLUMNS, SIDE_MAX)?;
    let rows = given.at_most("rows", ROWS, SIDE_MAX)?;
    if columns.saturating_mul(rows) > CELLS_MAX {
        return Err(Problem::wrong_parameter("a ring has at most 16384 cells"));
    }
    let holds = holds::manifests(service, caller, (volume.id(), HOLDS_MAX)).await;
    Ok(Look::Ring { columns, rows, holds })
}

fn gaps(caller: &Caller, given: &Given) -> Result<Look, Problem> {
    let (query, now_ns) = (given.query(), SystemClock.realtime().0);
    checked::checked(&query, now_ns)?;
    let (from, until) = checked::times(&caller.narrowed(&query), now_ns)?;
    let limit = given.at_most("limit", GAPS, GAPS_MAX)?;
    Ok(Look::Gaps {
        from_ns: from.0,
        until_ns: until.0,
        is_narrowed: caller.filter.is_some(),
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    })
}
