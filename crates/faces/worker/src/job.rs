//! What takes long: a line now and then says how far it is, the last one what came of it.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use host::SystemClock;
use questions::{Answered, JobSaid, JobWanted, Refused};
use serde_json::Value;
use units::{Clock as _, NANOS_PER_SECOND};

use super::{Work, seen};

/// At most so often it is said how far a job is.
const BETWEEN_NS: i64 = NANOS_PER_SECOND / 4;
/// A longer report is left to the verb.
const RESULT_BYTES_MAX: usize = 1 << 20;

impl Work<'_> {
    pub(super) fn job(&self, wanted: &JobWanted, data: &UnixStream) -> Result<Answered, Refused> {
        let mut telling = Telling { data, next_ns: 0 };
        let (is_clean, text, answered) = match wanted {
            JobWanted::Verify => self.verify(&mut telling)?,
            JobWanted::Scrub { dry_run } => self.scrub(*dry_run, &mut telling)?,
            JobWanted::Hold(wanted) => {
                let tell = &mut |progress: &extract::Progress| telling.tell(progress.packets, None);
                let (held, answered) = self.put_aside(wanted, tell)?;
                let is_clean = answered.statement.state == "complete";
                (is_clean, page::safe::json_line(&held), answered)
            }
        };
        let result: Option<Value> =
            (text.len() <= RESULT_BYTES_MAX).then(|| serde_json::from_str(&text).ok()).flatten();
        telling.say(&JobSaid::Found { is_clean, result });
        Ok(answered)
    }

    fn verify(&self, telling: &mut Telling<'_>) -> Result<(bool, String, Answered), Refused> {
        let report = upkeep::verify(&self.question.volume, &[], &mut |done, of| {
            telling.tell(done, Some(of));
            self.flow()
        });
        let report = report.map_err(|error| Refused::because(&error))?;
        let is_clean = report.is_clean && report.is_complete;
        Ok((is_clean, volume_view::verification_json(&report), seen()))
    }

    fn scrub(
        &self,
        dry_run: bool,
        telling: &mut Telling<'_>,
    ) -> Result<(bool, String, Answered), Refused> {
        let volume = &self.question.volume;
        let report = upkeep::scrub(volume, &[], dry_run, &SystemClock, &mut |done, of| {
            telling.tell(done, Some(of));
            self.flow()
        });
        let report = report.map_err(|error| Refused::because(&error))?;
        let is_clean = report.is_sound && report.is_complete;
        Ok((is_clean, volume_view::scrubbed_json(&report), seen()))
    }
}

/// Says how far a job is, not too often.
struct Telling<'a> {
    data: &'a UnixStream,
    next_ns: i64,
}

impl Telling<'_> {
    fn tell(&mut self, done: u64, of: Option<u64>) {
        let now_ns = SystemClock.boottime_ns();
        if now_ns >= self.next_ns {
            self.next_ns = now_ns.saturating_add(BETWEEN_NS);
            self.say(&JobSaid::Progress { done, of });
        }
    }

    /// Where nobody reads there is nobody to be told.
    fn say(&mut self, said: &JobSaid) {
        let line = page::safe::json_line(said);
        self.data.write_all(line.as_bytes()).unwrap_or_default();
    }
}
