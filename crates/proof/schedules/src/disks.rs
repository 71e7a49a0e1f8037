//! Scenes of the threads that wait for disks.

use core::time::Duration;

use shuttle::thread;

use crate::jobs::Jobs;
use crate::sync::Arc;

/// Waits do not end here.
const LONG: Duration = Duration::from_hours(1);

/// Two threads do what a third one gives them: each job is done once, who asks hears of all of
/// them, and in the end both threads end.
pub fn each_job_is_done_once() {
    let jobs = Arc::new(Jobs::new());
    let workers = [0, 1].map(|_| {
        let jobs = Arc::clone(&jobs);
        thread::spawn(move || {
            while let Some(job) = jobs.next() {
                jobs.finish(job);
            }
        })
    });
    let mut done = Vec::new();
    (0..3).for_each(|job| jobs.give(job));
    while done.len() < 2 {
        jobs.reap(Some(LONG), &mut done);
    }
    jobs.give(3);
    let left = 4 - done.len();
    assert!(jobs.end(left, LONG), "it waits for as long as it takes");
    workers.into_iter().for_each(|it| it.join().expect("it hears the end"));
    jobs.reap(None, &mut done);
    done.sort_unstable();
    assert_eq!(done, [0, 1, 2, 3]);
}
