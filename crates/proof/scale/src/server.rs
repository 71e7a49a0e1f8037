//! What does one thing after the other: cores, a link, a store. Who comes first is served first.

use std::collections::BTreeMap;

use units::number::real;

use crate::agenda::seconds;

/// So many that serve from one queue.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// When each is free, and how many are then.
    free: BTreeMap<i64, usize>,
    count: usize,
    /// What was served, the time that took, and the time it was waited for.
    served: u64,
    busy_ns: i64,
    waited_ns: i64,
    waited_max_ns: i64,
    last_ns: i64,
}

impl Server {
    pub(crate) fn new(count: usize) -> Self {
        let free = BTreeMap::from([(0, count.max(1))]);
        let (served, busy_ns, waited_ns, waited_max_ns) = (0, 0, 0, 0);
        Self { free, count: count.max(1), served, busy_ns, waited_ns, waited_max_ns, last_ns: 0 }
    }

    /// When something is done that comes now and takes so long. Who comes later is served later.
    pub(crate) fn serve(&mut self, now_ns: i64, takes_ns: i64) -> i64 {
        assert!(now_ns >= self.last_ns, "they come in the order of time");
        self.last_ns = now_ns;
        let (free_ns, count) = self.free.pop_first().expect("one is free at some time");
        if count > 1 {
            self.free.insert(free_ns, count - 1);
        }
        let begin_ns = free_ns.max(now_ns);
        let done_ns = begin_ns.saturating_add(takes_ns);
        *self.free.entry(done_ns).or_default() += 1;
        self.served += 1;
        self.busy_ns = self.busy_ns.saturating_add(takes_ns);
        self.waited_ns = self.waited_ns.saturating_add(begin_ns - now_ns);
        self.waited_max_ns = self.waited_max_ns.max(begin_ns - now_ns);
        done_ns
    }

    /// How long who comes now would wait.
    pub(crate) fn backlog_ns(&self, now_ns: i64) -> i64 {
        self.free.first_key_value().map_or(0, |(free_ns, _)| free_ns.saturating_sub(now_ns).max(0))
    }

    #[cfg(test)]
    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    /// Which share of a time they were busy.
    pub(crate) fn share(&self, of_ns: i64) -> f64 {
        let all = seconds(of_ns) * units::number::real_usize(self.count);
        if all > 0.0 { seconds(self.busy_ns) / all } else { 0.0 }
    }

    pub(crate) fn mean_wait_s(&self) -> f64 {
        seconds(self.waited_ns) / real(self.served.max(1))
    }

    pub(crate) fn longest_wait_s(&self) -> f64 {
        seconds(self.waited_max_ns)
    }
}

#[cfg(test)]
mod tests {
    use units::Random;

    use super::*;
    use crate::chance::exponential;

    /// M/D/1 (Pollaczek and Khinchine): the mean wait is u / (2 (1 - u)) of a service, at the
    /// share u that the server is busy. And the number that waits is the rate times the wait
    /// (Little), summed here by its area.
    #[test]
    fn the_mean_wait_is_that_of_the_formula_and_queues_balance() {
        const SERVICE_NS: i64 = 1_000_000;
        for (share, tolerance) in [(0.3, 0.02), (0.6, 0.02), (0.9, 0.06)] {
            let mean_ns = units::number::whole(real(SERVICE_NS.unsigned_abs()) / share);
            let mean_ns = i64::try_from(mean_ns).unwrap();
            let (mut random, mut server, mut now_ns) = (Random::new(5), Server::new(1), 0);
            let (mut begins, mut area_ns) = (Vec::new(), 0_i64);
            for _ in 0..1_000_000 {
                now_ns += exponential(&mut random, mean_ns);
                let begin_ns = server.serve(now_ns, SERVICE_NS) - SERVICE_NS;
                area_ns += begin_ns - now_ns;
                begins.push(begin_ns);
            }
            assert!(begins.is_sorted_by(|a, b| b - a >= SERVICE_NS), "one at a time");
            let formula = share / (2.0 * (1.0 - share)) * seconds(SERVICE_NS);
            let wait = server.mean_wait_s();
            assert!((wait / formula - 1.0).abs() < tolerance, "{share}: {wait} {formula}");
            let number = seconds(area_ns) / seconds(now_ns);
            let rate = real(server.served()) / seconds(now_ns);
            assert!((number / (rate * wait) - 1.0).abs() < 1e-6, "{number}");
            assert!((server.share(now_ns) - share).abs() < 0.01);
        }
    }

    #[test]
    fn of_several_the_one_that_is_free_first_serves() {
        let mut server = Server::new(2);
        assert_eq!([server.serve(0, 10), server.serve(0, 4), server.serve(1, 4)], [10, 4, 8]);
        assert_eq!((server.backlog_ns(2), server.serve(20, 1)), (6, 21));
    }
}
