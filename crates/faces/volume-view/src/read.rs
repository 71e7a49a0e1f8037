//! The status of a volume out of the JSON that [`crate::status_json`] makes of it, so that what a
//! service says of its volumes is shown by the code that shows those of this machine.

use serde::Deserialize;
use serde_json::{Map, Value};
use upkeep::Status;

/// JSON that is no status of a volume.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NoStatus(serde_json::Error);

/// A status, and what is beside it.
#[derive(Deserialize)]
struct Standing {
    #[serde(flatten)]
    status: Status,
    #[serde(flatten)]
    going: Map<String, Value>,
}

/// The status, and what the recorder said of the recording that goes on, as
/// [`crate::status`] takes them. A member that is behind has not kept which stripes it lacks.
///
/// # Errors
/// When it is none: see [`NoStatus`].
pub fn read_status(status: Value) -> Result<(Status, Option<String>), NoStatus> {
    let Standing { status, going } = serde_json::from_value(status).map_err(NoStatus)?;
    let going = (!going.is_empty()).then(|| page::safe::json_line(&going));
    Ok((status, going))
}
