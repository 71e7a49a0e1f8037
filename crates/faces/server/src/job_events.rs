//! How a job goes on, as server-sent events: `progress`, and as the last one `end`, each with the
//! job as JSON.

use core::time::Duration;
use std::io;
use std::sync::Arc;

use ::jobs::Job;
use bytes::Bytes;
use interface::EVENTS;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::watch::Receiver;
use tokio::time::{sleep, timeout};

use crate::body::{Body, Reply, reply};
use crate::problem::Problem;
use crate::trail::Outcome;
use crate::validity::Validity;

/// Events on their way to a connection.
const EVENTS_MAX: usize = 2;
/// At most so often something is said.
const BETWEEN: Duration = Duration::from_millis(200);
/// And at least so often, so that who waits and what lies between know that there is somebody.
const STILL_HERE: Duration = Duration::from_secs(15);
/// A client that takes nothing for so long has left.
const STALL: Duration = Duration::from_mins(1);
/// A comment, which clients leave out.
const COMMENT: Bytes = Bytes::from_static(b": still here\n\n");

/// The events of a job from now to its end.
pub(crate) fn stream(job: Receiver<Job>, validity: Validity) -> Reply {
    let (sender, receiver) = channel(EVENTS_MAX);
    tokio::spawn(async move {
        tokio::select! {
            // A client that has left is told nothing.
            told = tell(job, &sender) => drop(told),
            () = validity.lapse() => {
                let broken = io::Error::other(Problem::no_credential().text());
                drop(timeout(STALL, sender.send(Err(broken))).await);
            }
        }
    });
    reply(EVENTS, Body::stream(receiver, Arc::<Outcome>::default()))
}

/// The client has left.
struct Gone;

async fn tell(mut job: Receiver<Job>, sender: &Sender<io::Result<Bytes>>) -> Result<(), Gone> {
    loop {
        let now = job.borrow_and_update().clone();
        let is_over = now.state.is_over();
        send(sender, event(&now, is_over)).await?;
        if is_over {
            return Ok(());
        }
        sleep(BETWEEN).await;
        loop {
            tokio::select! {
                biased;
                () = sender.closed() => return Err(Gone),
                changed = timeout(STILL_HERE, job.changed()) => match changed {
                    Ok(Ok(())) => break,
                    Ok(Err(_)) => return Ok(()),
                    Err(_) => send(sender, COMMENT).await?,
                },
            }
        }
    }
}

async fn send(sender: &Sender<io::Result<Bytes>>, bytes: Bytes) -> Result<(), Gone> {
    match timeout(STALL, sender.send(Ok(bytes))).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Gone),
    }
}

fn event(job: &Job, is_over: bool) -> Bytes {
    let name = if is_over { "end" } else { "progress" };
    // A line of JSON has no line feed but the one at its end.
    format!("event: {name}\ndata: {}\n", page::safe::json_line(job)).into()
}
