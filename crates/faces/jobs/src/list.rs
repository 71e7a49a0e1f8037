//! The list of jobs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::watch::{Receiver, Sender};

use crate::job::{Job, State};

/// So many jobs may wait or run.
const GOING_MAX: usize = 16;
/// And so many of who started them: others have room.
const OWN_GOING_MAX: usize = 8;
/// And so many are listed, with those that have ended.
const LISTED_MAX: usize = 64;

/// There is no room for one more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// Of who wants to start it.
    Own,
    /// Of all.
    All,
}

/// Why a job is not ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotEnded {
    /// There is none of this id.
    Unknown,
    /// It has ended.
    IsOver,
}

/// The jobs of a service.
#[derive(Debug, Default)]
pub struct Jobs {
    /// The oldest first.
    list: Mutex<VecDeque<Entry>>,
}

#[derive(Debug)]
struct Entry {
    job: Arc<Sender<Job>>,
    /// Why it is to end, once somebody says so.
    end: Arc<Sender<Option<String>>>,
}

impl Entry {
    fn is_over(&self) -> bool {
        self.job.borrow().state.is_over()
    }
}

/// A job for who does it.
#[derive(Debug)]
pub struct Going {
    job: Arc<Sender<Job>>,
    end: Receiver<Option<String>>,
}

impl Jobs {
    /// Lists a new job.
    ///
    /// # Errors
    /// When as many wait and run as may.
    pub fn add(&self, job: Job) -> Result<Going, Full> {
        let mut list = stage::lock(&self.list);
        let going = || list.iter().filter(|entry| !entry.is_over());
        if going().filter(|entry| entry.job.borrow().by == job.by).count() >= OWN_GOING_MAX {
            return Err(Full::Own);
        }
        if going().count() >= GOING_MAX {
            return Err(Full::All);
        }
        while list.len() >= LISTED_MAX {
            let Some(oldest) = list.iter().position(Entry::is_over) else { return Err(Full::All) };
            list.remove(oldest);
        }
        let (job, end) = (Arc::new(Sender::new(job)), Arc::new(Sender::new(None)));
        let going = Going { job: Arc::clone(&job), end: end.subscribe() };
        list.push_back(Entry { job, end });
        Ok(going)
    }

    /// All that are listed, the newest first.
    pub fn all(&self) -> Vec<Job> {
        let list = stage::lock(&self.list);
        list.iter().rev().map(|entry| entry.job.borrow().clone()).collect()
    }

    /// One of them, as it stands and will stand.
    pub fn watch(&self, id: &str) -> Option<Receiver<Job>> {
        let list = stage::lock(&self.list);
        let entry = list.iter().find(|entry| entry.job.borrow().id == id)?;
        Some(entry.job.subscribe())
    }

    /// Says that a job is to end early, and why.
    ///
    /// # Errors
    /// When there is none of this id, or it has ended.
    pub fn end(&self, id: &str, why: &str) -> Result<(), NotEnded> {
        let list = stage::lock(&self.list);
        let entry = list.iter().find(|entry| entry.job.borrow().id == id);
        let entry = entry.ok_or(NotEnded::Unknown)?;
        if entry.is_over() {
            return Err(NotEnded::IsOver);
        }
        entry.end.send_replace(Some(why.to_owned()));
        Ok(())
    }

    /// Says so of all.
    pub fn end_all(&self, why: &str) {
        let list = stage::lock(&self.list);
        for entry in list.iter().filter(|entry| !entry.is_over()) {
            entry.end.send_replace(Some(why.to_owned()));
        }
    }

    /// How many wait or run.
    pub fn going(&self) -> usize {
        let list = stage::lock(&self.list);
        list.iter().filter(|entry| !entry.is_over()).count()
    }
}

impl Going {
    /// How it stands.
    pub fn job(&self) -> Job {
        self.job.borrow().clone()
    }

    /// Changes how it stands; who watches is told.
    pub fn change(&self, change: impl FnOnce(&mut Job)) {
        self.job.send_modify(change);
    }

    /// Waits until somebody wants it to end; why.
    pub async fn ended(&self) -> String {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            // It is listed no more.
            Err(_) => String::new(),
        }
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        // Whoever does it has gone without a word.
        let is_over = self.job.borrow().state.is_over();
        if !is_over {
            self.change(|job| job.state = State::Cancelled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Kind;

    fn job(number: usize) -> Job {
        let by = if number.is_multiple_of(2) { "anna" } else { "ben" };
        Job::new(number.to_string(), (Kind::Verify, "spool"), by, 0)
    }

    #[test]
    fn so_many_go_on_and_the_oldest_that_have_ended_are_forgotten() {
        let jobs = Jobs::default();
        let going: Vec<Going> =
            (0..GOING_MAX).map(|number| jobs.add(job(number)).unwrap()).collect();
        assert_eq!((jobs.going(), jobs.add(job(99)).unwrap_err()), (GOING_MAX, Full::Own));
        let of_another = Job { by: "carol".to_owned(), ..job(99) };
        assert_eq!(jobs.add(of_another).unwrap_err(), Full::All);
        going[0].change(|job| job.state = State::Done);
        for number in GOING_MAX..GOING_MAX + 2 * LISTED_MAX {
            let one = jobs.add(Job { by: "anna".to_owned(), ..job(number) }).unwrap();
            one.change(|job| job.state = State::Failed);
        }
        let all = jobs.all();
        assert_eq!(all.len(), LISTED_MAX);
        assert!(all.iter().any(|job| job.id == "1"), "what goes on stays");
        assert!(jobs.watch("0").is_none() && jobs.watch("1").is_some());
    }

    #[test]
    fn one_who_starts_many_leaves_room_to_others() {
        let jobs = Jobs::default();
        let of = |by: &str, number| Job { by: by.to_owned(), ..job(number) };
        let going: Vec<Going> =
            (0..OWN_GOING_MAX).map(|number| jobs.add(of("anna", number)).unwrap()).collect();
        assert_eq!(jobs.add(of("anna", 99)).unwrap_err(), Full::Own);
        jobs.add(of("ben", 99)).unwrap();
        assert_eq!(going.len(), OWN_GOING_MAX);
    }

    #[test]
    fn one_that_is_to_end_is_told_and_one_that_has_ended_is_not() {
        let jobs = Jobs::default();
        let going = jobs.add(job(1)).unwrap();
        assert_eq!(jobs.end("2", "x"), Err(NotEnded::Unknown));
        assert_eq!(jobs.end("1", "anna says so"), Ok(()));
        assert_eq!(going.end.borrow().as_deref(), Some("anna says so"));
        drop(going);
        assert_eq!(jobs.all()[0].state, State::Cancelled);
        assert_eq!(jobs.end("1", "x"), Err(NotEnded::IsOver));
        jobs.end_all("x");
        assert_eq!(jobs.going(), 0);
    }
}
