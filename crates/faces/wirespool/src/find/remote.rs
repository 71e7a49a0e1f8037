//! Sessions of a service, with how many came so far.

use ::found::Found;
use ::remote::{Error, There, Wanted};

use crate::answered::Answered;
use crate::progress::Progress;
use crate::stdout;

/// Calls `take` with the sessions.
pub(super) fn sessions(
    there: &There,
    wanted: &Wanted,
    take: &mut dyn FnMut(&Found) -> anyhow::Result<()>,
) -> anyhow::Result<Answered> {
    let mut progress = Some(Progress::new("find"));
    let mut count = 0;
    let received = crate::remote::sessions(there, wanted, &mut |found| {
        // A bar has no place among the lines of an answer.
        if stdout::is_terminal() {
            progress.take().into_iter().for_each(Progress::finish);
        }
        count += 1;
        let shown = || page::text::plural(count, "session");
        progress.as_mut().into_iter().for_each(|progress| progress.text(&shown));
        take(found)
    });
    progress.into_iter().for_each(Progress::finish);
    match received {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Stopped)) => {
            Ok(Answered::stopped(count, "session"))
        }
        other => other,
    }
}
