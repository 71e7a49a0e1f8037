//! Rows of a service, which come as a stream of Arrow's IPC format and are shown as rows of this
//! machine are.

use ::remote::{ARROW, Error};
use ::sql::Received;
use anyhow::bail;

use super::{Flags, Form, rows_of};
use crate::answered::Answered;
use crate::progress::Progress;
use crate::remote::{There, of_remote};
use crate::stdout;

/// Shows the rows that a service answers with.
pub(super) fn run(flags: &Flags, there: &There) -> anyhow::Result<Answered> {
    let mut form = Form::new(flags)?;
    let mut out = stdout::buffered();
    let mut progress = Progress::new("sql");
    let mut count = 0;
    let id = receive(there, &mut |event| {
        count += rows_of(&event);
        if !stdout::is_terminal() {
            progress.text(&|| page::text::plural(count, "row"));
        }
        form.take(&event, &mut out)
    });
    progress.finish();
    let id = match id {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
            bail!("stopped: {} so far", page::text::plural(count, "row"));
        }
        other => other?,
    };
    let said = there.said(&id, Some(count)).map_err(of_remote)?;
    let answered = there.answered(said).map_err(of_remote)?;
    form.finish(&mut out)?;
    Ok(answered)
}

/// Calls `take` with the columns and the rows; gives the id of the answer.
fn receive(
    there: &There,
    take: &mut dyn FnMut(::sql::Event) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let mut answer = there.get("/api/v1/sql", &[], ARROW).map_err(of_remote)?;
    let wrong = |error: ::sql::Error| of_remote(there.unlike(&error.to_string()));
    let mut received = Received::default();
    while let Some(bytes) = answer.next().map_err(of_remote)? {
        received.push(&bytes);
        while let Some(event) = received.next().map_err(wrong)? {
            take(event)?;
        }
    }
    received.finish().map_err(wrong)?;
    Ok(answer.id().map_err(of_remote)?.to_owned())
}
