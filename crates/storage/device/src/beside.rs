//! Asking many places at the same time: a caller that waits for all of them waits as long as the
//! slowest takes, and not as long as all of them together.

use std::thread;

/// Places that are asked at the same time.
const AT_ONCE: usize = 64;

/// Does the same for each of `places`, 64 at a time, each in a thread with this name; gives what
/// came of it in their order. Where no thread is to be had it takes longer.
///
/// # Panics
/// When `work` does.
pub fn side_by_side<P: Sync, T: Send>(
    name: &str,
    places: &[P],
    work: impl Fn(&P) -> T + Sync,
) -> Vec<T> {
    if let [place] = places {
        return Vec::from([work(place)]);
    }
    let mut all = Vec::with_capacity(places.len());
    for some in places.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let start = |place| {
                let work = &work;
                let thread = thread::Builder::new().name(name.to_owned());
                thread.spawn_scoped(scope, move || work(place))
            };
            let threads: Vec<_> = some.iter().map(|place| (place, start(place))).collect();
            let done = threads.into_iter().map(|(place, thread)| match thread {
                Ok(thread) => thread.join().expect("a panic aborts"),
                Err(_) => work(place),
            });
            all.extend(done);
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Each waits for all others: one after the other they would wait for ever.
    #[test]
    fn places_are_asked_at_the_same_time_and_answer_in_their_order() {
        let all = Barrier::new(24);
        let places: Vec<usize> = (0..24).collect();
        let doubled = side_by_side("ask", &places, |place| {
            all.wait();
            2 * place
        });
        assert_eq!(doubled, (0..48).step_by(2).collect::<Vec<_>>());
    }
}
