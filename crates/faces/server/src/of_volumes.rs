//! Matters of volumes and of the service, each with who answers it.

use std::sync::Arc;

use hyper::header::HeaderMap;
use interface::{JSON, Matter};

use crate::access::Caller;
use crate::body::{Body, Reply, reply};
use crate::given::Given;
use crate::log::Entry;
use crate::problem::Problem;
use crate::service::Service;
use crate::{approving, asking, job_runs, looking, openapi, tagging};

/// Answers what is asked of volumes and of the service.
pub(crate) async fn answer(
    service: &Arc<Service>,
    (caller, headers, entry): (&Caller, &HeaderMap, &mut Entry),
    (what, id, given): (Matter, &str, &Given),
) -> Result<Reply, Problem> {
    // That knows what it changes, and puts it down by itself.
    if what.is_of_requests() {
        return approving::answer(service, (caller, entry), (what, id, given)).await;
    }
    if what.changes() && !entry.record.begin_change().await {
        return Err(Problem::no_audit());
    }
    match what {
        Matter::OpenApi => Ok(reply(JSON, Body::text(openapi::document()))),
        what if what.is_looked_at() => {
            looking::answer(service, (caller, headers), (what, given)).await
        }
        Matter::Tags | Matter::AddTags | Matter::RemoveTag => {
            tagging::answer(service, (caller, headers), (what, id, given)).await
        }
        Matter::Jobs | Matter::StartJob | Matter::Job | Matter::JobEvents | Matter::CancelJob => {
            job_runs::answer(service, caller, (what, id, given))
        }
        _ => asking::answer(service, (caller, headers), (what, id, given)).await,
    }
}
