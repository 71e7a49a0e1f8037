//! Holds over the network: what a credential sees of them, and how they are made and removed.
//!
//! A credential with a filter sees and removes the holds that were made with the same filter, which
//! their manifests keep: not those of others, whatever their query.

use std::path::PathBuf;
use std::sync::Arc;

use interface::JSON;
use manifest::HoldSummary;
use questions::HoldWanted;
use schemars::JsonSchema;
use serde::Serialize;

use crate::access::Caller;
use crate::body::{Body, Reply, reply};
use crate::config::Holds;
use crate::problem::Problem;
use crate::service::Service;

/// What a worker is asked to put aside.
pub(crate) fn wanted(
    (service, caller): (&Service, &Caller),
    query: &str,
    (now_ns, only_range): (i64, bool),
) -> Result<HoldWanted, Problem> {
    let Holds { folder, size_max } = folder(service)?.clone();
    let bytes_max = service.bounds.answer_bytes;
    let (query, filter) = (caller.narrowed(query), caller.filter.clone());
    let only_range = only_range || filter.is_some();
    Ok(HoldWanted { query, filter, now_ns, only_range, folder, size_max, bytes_max })
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

/// Whether a hold was made by a credential that sees the same. One that sees everything may see
/// all of them.
fn may_see(caller: &Caller, hold: &HoldSummary) -> bool {
    caller.filter.is_none() || caller.filter == hold.filter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_sees_only_holds_that_were_made_with_it() {
        let caller = |filter: Option<&str>| Caller {
            filter: filter.map(str::to_owned),
            ..Caller::default()
        };
        let of = |filter: Option<&str>| HoldSummary {
            file: "h".to_owned(),
            query: "port 53".to_owned(),
            volume_id: "v".to_owned(),
            packets: 0,
            bytes: 0,
            complete: true,
            altered: None,
            complete_to_ns: None,
            filter: filter.map(str::to_owned),
            case: manifest::CaseInfo::default(),
        };
        for (filter, is_seen) in [(Some("port 53"), true), (Some("port 54"), false), (None, false)]
        {
            assert_eq!(may_see(&caller(Some("port 53")), &of(filter)), is_seen, "{filter:?}");
            assert!(may_see(&caller(None), &of(filter)));
        }
    }
}
