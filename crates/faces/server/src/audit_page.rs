//! The audit, as an administrator reads it: pages of its newest lines, and whether its chain is
//! whole.

use std::path::PathBuf;

use audit::{Fault, Filter, Line, Link, Verified};
use interface::{JSON, Matter};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use units::hex;

use crate::body::{Body, Reply, reply};
use crate::problem::Problem;
use crate::received::Received;

/// Lines of a page, if the request does not say how many.
const PAGE: u64 = 100;
const PAGE_MAX: u64 = 1000;

/// Lines of the audit, the newest first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditPage {
    lines: Vec<PagedLine>,
    /// What `before` has to be for the next page; null on the last one.
    next: Option<u64>,
    check: AuditCheck,
}

#[derive(Serialize, JsonSchema)]
struct PagedLine {
    #[schemars(with = "Map<String, Value>")]
    line: Line,
    /// A request that has begun may go on, or was broken off.
    has_end: bool,
}

/// What a check of the audit found.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AuditCheck {
    is_whole: bool,
    /// Whole lines.
    lines: u64,
    /// Number of the first line.
    first: Option<u64>,
    /// Number of the last line.
    last: u64,
    /// Hash of the last line.
    head: String,
    /// Lines that are none, of which the next line said so.
    torn: u64,
    faults_count: u64,
    /// The first of them.
    faults: Vec<FoundFault>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AuditFault")]
struct FoundFault {
    file: Option<String>,
    line: u64,
    why: String,
}

/// Answers what is asked about the audit.
pub(crate) async fn answer(received: &Received<'_>, what: Matter) -> Result<Reply, Problem> {
    let service = received.service;
    let why = "this service has no audit (--audit)";
    let path = service.trail.path().ok_or_else(|| Problem::not_found(why))?.to_path_buf();
    let end = service.trail.end();
    // It reads as much as a disk gives: one at a time.
    let _place = service.audit_reads.try_acquire().map_err(|_| Problem::busy())?;
    if what == Matter::AuditCheck {
        let checked = tokio::task::spawn_blocking(move || audit::verify_live(&path, end)).await;
        let checked = checked.map_err(|_| Problem::worker_ended())?;
        let checked = checked.map_err(|error| Problem::audit_unread(&error))?;
        return Ok(reply(JSON, Body::text(page::safe::json_line(&AuditCheck::of(&checked)))));
    }
    let said = page(received, path, end).await?;
    Ok(reply(JSON, Body::text(page::safe::json_line(&said))))
}

async fn page(received: &Received<'_>, path: PathBuf, end: Link) -> Result<AuditPage, Problem> {
    let given = received.given;
    let limit = usize::try_from(given.at_most("limit", PAGE, PAGE_MAX)?).unwrap_or(0);
    let before = given.number("before")?;
    let word = |name| Ok::<_, Problem>(given.filled(name)?.map(str::to_owned));
    let (credential, path_part) = (word("credential")?, word("path")?);
    let filter = Filter { credential, path: path_part, ..Filter::default() };
    let read = move || audit::page(&path, &filter, (before, limit), end);
    let read = tokio::task::spawn_blocking(read).await.map_err(|_| Problem::worker_ended())?;
    let page = read.map_err(|error| Problem::audit_unread(&error))?;
    let line = |(line, has_end)| PagedLine { line, has_end };
    let check = AuditCheck::of(&page.verified);
    Ok(AuditPage { lines: page.lines.into_iter().map(line).collect(), next: page.next, check })
}

impl AuditCheck {
    fn of(verified: &Verified) -> Self {
        let fault = |(path, fault): &(PathBuf, Fault)| FoundFault {
            file: path.file_name().map(|name| name.to_string_lossy().into_owned()),
            line: fault.line,
            why: fault.why.clone(),
        };
        Self {
            is_whole: verified.is_whole(),
            lines: verified.lines,
            first: verified.first,
            last: verified.end.seq,
            head: hex(&verified.end.hash),
            torn: verified.torn,
            faults_count: verified.faults_count,
            faults: verified.faults.iter().map(fault).collect(),
        }
    }
}
