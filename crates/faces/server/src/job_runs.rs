//! Long jobs over the network: started, listed and ended by administrators, done by processes of
//! their own, one after the other for each who starts them. Who started one may leave.

use std::sync::Arc;

use ::jobs::{Going, Job, JobList, Kind, NotEnded, State};
use host::SystemClock;
use interface::{JSON, Matter};
use questions::{Answered, Ending, JobSaid, JobWanted, Question, What};
use units::{Clock as _, hex};

use crate::access::Caller;
use crate::body::{Body, Reply, reply};
use crate::given::Given;
use crate::problem::Problem;
use crate::service::{JOB_TIME, Service};
use crate::validity::Validity;
use crate::{checked, holds, job_events};

/// More than a line of a worker has.
const LINE_BYTES_MAX: usize = 4 << 20;

/// Answers what is asked about jobs.
pub(crate) fn answer(
    service: &Arc<Service>,
    caller: &Caller,
    (what, id, given): (Matter, &str, &Given),
) -> Result<Reply, Problem> {
    let unknown = || Problem::not_found("no job of this service has this id");
    match what {
        Matter::StartJob => start(service, caller, given),
        Matter::CancelJob => {
            let why = format!("{} ended it", caller.name);
            match service.jobs.end(id, &why) {
                Ok(()) => one(service, id).ok_or_else(unknown),
                Err(NotEnded::IsOver) => Err(Problem::job_is_over()),
                Err(NotEnded::Unknown) => Err(unknown()),
            }
        }
        Matter::Job => one(service, id).ok_or_else(unknown),
        Matter::JobEvents => {
            let job = service.jobs.watch(id).ok_or_else(unknown)?;
            Ok(job_events::stream(job, Validity::of(service, caller)))
        }
        _ => {
            let jobs = service.jobs.all().into_iter();
            let jobs = jobs.map(|job| Job { result: None, ..job }).collect();
            Ok(reply(JSON, Body::text(page::safe::json_pretty(&JobList { jobs }))))
        }
    }
}

fn one(service: &Service, id: &str) -> Option<Reply> {
    let job = service.jobs.watch(id)?.borrow().clone();
    Some(shown(&job))
}

fn shown(job: &Job) -> Reply {
    reply(JSON, Body::text(page::safe::json_pretty(job)))
}

fn start(service: &Arc<Service>, caller: &Caller, given: &Given) -> Result<Reply, Problem> {
    if given.text("kind").is_none() {
        return Err(Problem::wrong_parameter("kind is verify, scrub or hold"));
    }
    let kind = given.choice("kind", (&Kind::ALL, Kind::Verify), Kind::word)?;
    let (query, now_ns) = (given.text("query"), SystemClock.realtime().0);
    let dry_run = given.flag("dry_run")?;
    let only_range = given.flag("only_range")?;
    if kind != Kind::Hold && (query.is_some() || only_range) {
        return Err(Problem::wrong_parameter("query and only_range are of a hold"));
    }
    if kind != Kind::Scrub && dry_run {
        return Err(Problem::wrong_parameter("dry_run is of a scrub"));
    }
    let wanted = match kind {
        Kind::Verify => JobWanted::Verify,
        Kind::Scrub => JobWanted::Scrub { dry_run },
        Kind::Hold => {
            let query = given.written_query()?;
            checked::checked(query, now_ns)?;
            JobWanted::Hold(holds::wanted((service, caller), query, (now_ns, only_range))?)
        }
    };
    let sees_ns = checked::seen_times(caller.filter.as_deref())?;
    let volume = service.volume(given.text("volume"))?;
    let id = host::random_bytes::<16>().map_err(|_| Problem::no_worker())?;
    let waiting = Job::new(hex(&id), (kind, &volume.name), &caller.name, now_ns);
    let job = Job { query: query.map(str::to_owned), ..waiting };
    let going = service.jobs.add(job.clone()).map_err(|full| match full {
        ::jobs::Full::Own => Problem::own_queue_full(),
        ::jobs::Full::All => Problem::busy(),
    })?;
    let question = service.question(volume, What::Job(wanted), sees_ns);
    tokio::spawn(run(Arc::clone(service), going, question));
    Ok(shown(&job))
}

/// Does a job to its end, or until somebody has it end early.
async fn run(service: Arc<Service>, going: Going, question: Question) {
    let ended = tokio::select! {
        biased;
        // What it does is dropped, which kills its process.
        why = going.ended() => Err((State::Cancelled, why)),
        done = work(&service, &going, &question) => {
            done.map_err(|problem| (State::Failed, problem.text().trim().to_owned()))
        }
    };
    going.change(|job| {
        job.ended_ns = Some(SystemClock.realtime().0);
        match ended {
            Ok(_) => job.state = State::Done,
            Err((state, why)) => (job.state, job.reason) = (state, Some(why)),
        }
    });
    service.log.say(&line(&going.job()));
}

async fn work(
    service: &Service,
    going: &Going,
    question: &Question,
) -> Result<Box<Answered>, Problem> {
    // Each hold knows what the others take.
    let workers = match question.what {
        What::Job(JobWanted::Hold(_)) => &service.hold_workers,
        _ => &service.job_workers,
    };
    let by = going.job().by;
    let mut running = workers.start_within(JOB_TIME, &by, question).await?;
    going.change(|job| {
        (job.state, job.begun_ns) = (State::Running, Some(SystemClock.realtime().0));
    });
    let mut line = Vec::new();
    while let Some(bytes) = running.next().await? {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(part);
            if line.ends_with(b"\n") {
                note(going, &line)?;
                line.clear();
            }
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(Problem::worker_ended());
        }
    }
    match running.ending().await? {
        Ending::Refused(refused) => Err(Problem::refused(refused)),
        Ending::Answered(answered) => Ok(answered),
    }
}

fn note(going: &Going, line: &[u8]) -> Result<(), Problem> {
    let said = serde_json::from_slice(line).map_err(|_| Problem::worker_ended())?;
    going.change(|job| match said {
        JobSaid::Progress { done, of } => (job.done, job.of) = (done, of),
        JobSaid::Found { is_clean, result } => {
            (job.is_clean, job.result) = (Some(is_clean), result);
            job.done = job.of.unwrap_or(job.done);
        }
    });
    Ok(())
}

/// What the log says of a job that has ended.
fn line(job: &Job) -> String {
    let Job { kind, volume, by, state, is_clean, reason, .. } = job;
    let how = match (state, is_clean) {
        (State::Done, Some(true)) => "done, and nothing is wrong",
        (State::Done, _) => "done, and something is wrong",
        (State::Failed, _) => "failed",
        _ => "ended early",
    };
    let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    let text = format!("{} of {volume}, started by {by}: {how}{reason}", kind.word());
    format!("job {}: {}", job.id, page::safe::printable(&text))
}
