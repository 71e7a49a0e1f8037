//! What an error of the client means for a sensor, and what a service says of its answer.

use completeness::State;
use fleet::{Fault, Said};
use remote::{Error, Statement};

/// The service has as much to do as it takes on.
const BUSY: [&str; 3] = ["busy", "own-queue-full", "no-worker"];
/// The credential does not count on this connection.
const NO_CREDENTIAL: &str = "no-credential";
/// What an alert of TLS is called: the other side does not believe us, and says so when it can.
const ALERT: &str = "fatal alert";
/// The line of a statement that says what it is complete of.
const RECORDED: &str = "recorded: ";

pub(crate) fn of_remote(error: Error) -> Fault {
    let why = error.to_string();
    match error {
        Error::Stopped => Fault::Stopped,
        Error::Unreachable { .. } => Fault::Down(why),
        Error::Silent { .. } => Fault::Slow(why),
        Error::Broken { .. } if why.contains(ALERT) => Fault::Refused(why),
        Error::Broken { .. } => Fault::BrokenOff(why),
        Error::Redirected { .. } | Error::Unlike { .. } => Fault::Unlike(why),
        Error::Problem { problem, .. } if BUSY.contains(&problem.word()) => Fault::Busy(why),
        Error::Problem { problem, .. } if problem.word() == NO_CREDENTIAL => Fault::Lapsed(why),
        _ => Fault::Refused(why),
    }
}

/// What a sensor says of its answer.
pub(crate) fn of_statement(statement: Option<Statement>) -> Result<Said, Fault> {
    let wrong = || Fault::Unlike("its statement is none".to_owned());
    let statement = statement.ok_or_else(wrong)?;
    let state = State::named(&statement.state).ok_or_else(wrong)?;
    let within = statement.state_within_limit.as_deref();
    let within = within.map_or(Some(state), State::named).ok_or_else(wrong)?;
    // The first line counts what came and has the state.
    let lines = statement.text.lines().skip(1).filter(|line| !line.starts_with(RECORDED));
    let mut reasons: Vec<String> = lines.map(str::to_owned).collect();
    if state == State::Complete {
        reasons.clear();
    }
    if let Some(left_out) = statement.left_out.filter(|count| *count > 0) {
        reasons.push(format!("{left_out} sessions at the end of the order left out"));
    }
    Ok(Said {
        state,
        state_within_limit: within,
        is_behind: statement.is_behind(),
        reasons,
        notes: statement.notes,
    })
}
