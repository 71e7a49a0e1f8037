//! Holds over the network: what a credential sees of them, and how they are made and removed.
//!
//! A credential with a filter sees and removes the holds whose query is one of its own: its filter,
//! and nothing but that or one query besides.

use std::path::PathBuf;
use std::sync::Arc;

use host::SystemClock;
use interface::JSON;
use manifest::HoldSummary;
use query::Query;
use questions::HoldWanted;
use schemars::JsonSchema;
use serde::Serialize;
use units::{Clock as _, Timestamp};

use crate::access::Caller;
use crate::body::{Body, Reply, reply};
use crate::config::Holds;
use crate::problem::Problem;
use crate::service::Service;

/// What a worker is asked to put aside.
pub(crate) fn wanted(
    service: &Service,
    query: String,
    (now_ns, only_range): (i64, bool),
) -> Result<HoldWanted, Problem> {
    let Holds { folder, size_max } = folder(service)?.clone();
    let bytes_max = service.bounds.answer_bytes;
    Ok(HoldWanted { query, now_ns, only_range, folder, size_max, bytes_max })
}

/// Holds that a credential may know of.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Holds")]
pub(crate) struct HoldList {
    holds: Vec<HoldSummary>,
    /// Of these holds' packets.
    bytes: u64,
    /// That all holds of the service may take.
    bytes_most: u64,
}

/// The folder of holds, if this service has one.
fn folder(service: &Service) -> Result<&Holds, Problem> {
    let why = "this service has no folder of holds (--hold-dir)";
    service.holds.as_ref().ok_or_else(|| Problem::not_found(why))
}

/// The holds that a credential may know of.
pub(crate) async fn list(
    service: &Arc<Service>,
    caller: &Caller,
    volume: Option<&str>,
) -> Result<Reply, Problem> {
    let holds = folder(service)?;
    let named = volume.map(|name| service.volume(Some(name))).transpose()?;
    let mut seen = read(holds.folder.clone()).await?;
    seen.retain(|hold| {
        let is_of = |id: &str| hold.volume_id == id;
        let is_served = service.volumes.iter().any(|volume| is_of(volume.id()));
        may_see(caller, hold) && named.map_or(is_served, |volume| is_of(volume.id()))
    });
    let used: u64 = seen.iter().map(|hold| hold.bytes).sum();
    let said = HoldList { holds: seen, bytes: used, bytes_most: holds.size_max };
    Ok(reply(JSON, Body::text(page::safe::json_pretty(&said))))
}

/// Removes a hold that a credential may know of.
pub(crate) async fn release(
    service: &Arc<Service>,
    caller: &Caller,
    name: &str,
) -> Result<Reply, Problem> {
    let folder = folder(service)?.folder.clone();
    let seen = read(folder.clone()).await?;
    let unknown = || Problem::not_found("no hold of this name is one of yours");
    let hold = seen.into_iter().find(|hold| hold.file == name && may_see(caller, hold));
    let hold = hold.ok_or_else(unknown)?;
    let file = hold.file.clone();
    let removed = tokio::task::spawn_blocking(move || hold::remove(&folder, &file)).await;
    match removed {
        Ok(Ok(true)) => Ok(reply(JSON, Body::text(page::safe::json_pretty(&hold)))),
        Ok(Ok(false)) => Err(unknown()),
        Ok(Err(error)) => Err(failed(&error)),
        Err(_) => Err(Problem::worker_ended()),
    }
}

/// Where the manifests lie of the holds from a volume that a credential may know of: the newest so
/// many. None where this service has no folder of holds, or it cannot be read.
pub(crate) async fn manifests(
    service: &Arc<Service>,
    caller: &Caller,
    (volume_id, most): (&str, usize),
) -> Vec<PathBuf> {
    let Some(holds) = &service.holds else { return Vec::new() };
    let mut seen = read(holds.folder.clone()).await.unwrap_or_default();
    seen.retain(|hold| hold.volume_id == volume_id && may_see(caller, hold));
    // Their names begin with the time.
    seen.sort_by(|a, b| b.file.cmp(&a.file));
    let manifest = |hold: HoldSummary| holds.folder.join(format!("{}.json", hold.file));
    seen.into_iter().take(most).map(manifest).collect()
}

async fn read(folder: PathBuf) -> Result<Vec<HoldSummary>, Problem> {
    let listed = tokio::task::spawn_blocking(move || hold::list(&folder)).await;
    let listed = listed.map_err(|_| Problem::worker_ended())?;
    listed.map(|(holds, _)| holds).map_err(|error| failed(&error))
}

fn failed(error: &hold::Error) -> Problem {
    Problem::hold_failed(&page::safe::printable(&error.to_string()))
}

/// Whether a hold has nothing that the credential may not see: its query is what
/// [`Caller::narrowed`] makes of one.
fn may_see(caller: &Caller, hold: &HoldSummary) -> bool {
    let Some(filter) = &caller.filter else { return true };
    let before = format!("({filter}) and (");
    let inner = hold.query.strip_prefix(&before).and_then(|rest| rest.strip_suffix(')'));
    let now = Timestamp(SystemClock.realtime().0);
    // With a parenthesis too many it would be another query.
    hold.query == *filter || inner.is_some_and(|inner| Query::parse(inner, now).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_sees_only_holds_of_queries_that_it_was_put_around() {
        let filter = Some("port 53".to_owned());
        let caller = Caller { filter, ..Caller::default() };
        let of = |query: &str| HoldSummary {
            file: "h".to_owned(),
            query: query.to_owned(),
            volume_id: "v".to_owned(),
            packets: 0,
            bytes: 0,
            complete: true,
            altered: None,
            complete_to_ns: None,
            case: manifest::CaseInfo::default(),
        };
        for (query, is_seen) in [
            ("port 53", true),
            ("(port 53) and (host 10.0.0.1)", true),
            ("", false),
            ("port 54", false),
            ("(port 53) and (tcp) or (udp)", false),
            ("(port 53) and (tcp", false),
            ("(port 53) or (tcp)", false),
        ] {
            assert_eq!(may_see(&caller, &of(query)), is_seen, "{query}");
            assert!(may_see(&Caller::default(), &of(query)));
        }
        assert!(may_see(&caller, &of(&caller.narrowed("tcp or udp"))));
    }
}
