//! The audit, as an administrator reads it: pages of its newest lines, and whether its chain is
//! whole.

use std::path::PathBuf;

use audit::{Filter, Link, Verified};
use interface::{JSON, Matter};
use serde_json::{Value, json};
use units::hex;

use crate::body::{Body, Reply, reply};
use crate::problem::Problem;
use crate::received::Received;

/// Lines of a page, if the request does not say how many.
const PAGE: u64 = 100;
const PAGE_MAX: u64 = 1000;

/// Answers what is asked about the audit.
pub(crate) async fn answer(received: &Received<'_>, what: Matter) -> Result<Reply, Problem> {
    let service = received.service;
    let why = "this service has no audit (--audit)";
    let path = service.trail.path().ok_or_else(|| Problem::not_found(why))?.to_path_buf();
    let end = service.trail.end();
    // It reads as much as a disk gives: one at a time.
    let _place = service.audit_reads.try_acquire().map_err(|_| Problem::busy())?;
    let said = match what {
        Matter::AuditCheck => {
            let checked = tokio::task::spawn_blocking(move || audit::verify_live(&path, end)).await;
            let checked = checked.map_err(|_| Problem::worker_ended())?;
            shown_check(&checked.map_err(|error| Problem::audit_unread(&error))?)
        }
        _ => page(received, path, end).await?,
    };
    Ok(reply(JSON, Body::text(page::safe::json_line(&said))))
}

async fn page(received: &Received<'_>, path: PathBuf, end: Link) -> Result<Value, Problem> {
    let given = received.given;
    let limit = usize::try_from(given.at_most("limit", PAGE, PAGE_MAX)?).unwrap_or(0);
    let before = given.number("before")?;
    let word = |name| Ok::<_, Problem>(given.filled(name)?.map(str::to_owned));
    let (credential, path_part) = (word("credential")?, word("path")?);
    let filter = Filter { credential, path: path_part, ..Filter::default() };
    let read = move || audit::page(&path, &filter, (before, limit), end);
    let read = tokio::task::spawn_blocking(read).await.map_err(|_| Problem::worker_ended())?;
    let page = read.map_err(|error| Problem::audit_unread(&error))?;
    let lines: Vec<Value> = page
        .lines
        .iter()
        .map(|(line, has_end)| json!({"line": line, "has_end": has_end}))
        .collect();
    Ok(json!({"lines": lines, "next": page.next, "check": shown_check(&page.verified)}))
}

fn shown_check(verified: &Verified) -> Value {
    let faults = verified.faults.iter().map(|(path, fault)| {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
        json!({"file": file, "line": fault.line, "why": fault.why})
    });
    json!({
        "is_whole": verified.is_whole(),
        "lines": verified.lines,
        "first": verified.first,
        "last": verified.end.seq,
        "head": hex(&verified.end.hash),
        "torn": verified.torn,
        "faults_count": verified.faults_count,
        "faults": faults.collect::<Vec<Value>>(),
    })
}
