//! Rows of a service, which come as a stream of Arrow's IPC format and are shown as rows of this
//! machine are.

use ::remote::{ARROW, There};
use ::sql::Received;

use crate::remote::of_remote;

/// Calls `take` with the columns and the rows; gives the id of the answer.
pub(super) fn receive(
    there: &There,
    take: &mut dyn FnMut(::sql::Event) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let mut answer = there.get("/api/v1/sql", &[], ARROW).map_err(of_remote)?;
    let wrong = |error: ::sql::Error| of_remote(there.unlike(&error.to_string()));
    let mut received = Received::default();
    while let Some(bytes) = answer.piece().map_err(of_remote)? {
        received.push(&bytes);
        while let Some(event) = received.event().map_err(wrong)? {
            take(event)?;
        }
    }
    received.finish().map_err(wrong)?;
    Ok(answer.id().map_err(of_remote)?.to_owned())
}
