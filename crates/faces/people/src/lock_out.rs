//! Lock-out: who has failed waits, longer each time and never for ever.
//!
//! Failures are counted for a name, whoever asks, and for an address, whatever the name. An attempt
//! counts as a failure from its beginning: a thousand at once are a thousand failures. A name that
//! nobody has is treated as any other.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use units::NANOS_PER_SECOND;

/// So many failures cost nothing; then 2 s, 4 s, 8 s and so on, up to a longest wait.
const FREE_OF_NAME: u32 = 5;
const FREE_OF_PLACE: u32 = 20;
const LONGEST_OF_NAME_S: i64 = 5 * 60;
const LONGEST_OF_PLACE_S: i64 = 15 * 60;
/// Failures are forgotten after a day without a further one.
const FORGOTTEN_AFTER_S: i64 = 24 * 3600;
/// Names, and addresses, that are remembered.
const REMEMBERED_MAX: usize = 4096;

/// Failures of names and addresses.
#[derive(Debug, Default)]
pub struct LockOut {
    names: BTreeMap<String, Failures>,
    places: BTreeMap<IpAddr, Failures>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Failures {
    count: u32,
    last_ns: i64,
}

impl Failures {
    fn left_ns(self, free: u32, longest_s: i64, now_ns: i64) -> i64 {
        let beyond = self.count.saturating_sub(free);
        if beyond == 0 {
            return 0;
        }
        let doubled_s = 1_i64.checked_shl(beyond).filter(|wait| *wait > 0).unwrap_or(i64::MAX);
        let wait_ns = doubled_s.min(longest_s).saturating_mul(NANOS_PER_SECOND);
        self.last_ns.saturating_add(wait_ns).saturating_sub(now_ns).max(0)
    }

    fn is_forgotten(self, now_ns: i64) -> bool {
        let age_ns = now_ns.saturating_sub(self.last_ns);
        age_ns >= FORGOTTEN_AFTER_S.saturating_mul(NANOS_PER_SECOND)
    }
}

/// An attempt that goes on. It counts as a failure unless [`LockOut`] is told otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    name: String,
    place: IpAddr,
    at_ns: i64,
    /// When there was one before.
    name_ns: Option<i64>,
    place_ns: Option<i64>,
}

impl LockOut {
    /// Begins an attempt for a name from an address.
    ///
    /// # Errors
    /// How many nanoseconds it has to wait.
    pub fn begin(&mut self, name: &str, from: IpAddr, now_ns: i64) -> Result<Attempt, i64> {
        let place = place_of(from);
        let of_name = self.names.get(name).filter(|it| !it.is_forgotten(now_ns)).copied();
        let of_place = self.places.get(&place).filter(|it| !it.is_forgotten(now_ns)).copied();
        let left = |failures: Option<Failures>, free, longest_s| {
            failures.map_or(0, |failures| failures.left_ns(free, longest_s, now_ns))
        };
        let left_ns = left(of_name, FREE_OF_NAME, LONGEST_OF_NAME_S).max(left(
            of_place,
            FREE_OF_PLACE,
            LONGEST_OF_PLACE_S,
        ));
        if left_ns > 0 {
            return Err(left_ns);
        }
        count(&mut self.names, name.to_owned(), of_name, now_ns);
        count(&mut self.places, place, of_place, now_ns);
        Ok(Attempt {
            name: name.to_owned(),
            place,
            at_ns: now_ns,
            name_ns: of_name.map(|it| it.last_ns),
            place_ns: of_place.map(|it| it.last_ns),
        })
    }

    /// It was no failure, and proves nothing more: only itself is not counted.
    pub fn take_back(&mut self, attempt: &Attempt) {
        uncount(&mut self.names, &attempt.name, (attempt.at_ns, attempt.name_ns));
        uncount(&mut self.places, &attempt.place, (attempt.at_ns, attempt.place_ns));
    }

    /// It was the person: the failures of the name are forgotten. Those of the address are not, for
    /// who has an account could make them forgotten.
    pub fn succeed(&mut self, attempt: &Attempt) {
        self.names.remove(&attempt.name);
        uncount(&mut self.places, &attempt.place, (attempt.at_ns, attempt.place_ns));
    }
}

/// A machine that has a network of IPv6 addresses is one place.
fn place_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

fn count<K: Ord + Clone>(
    table: &mut BTreeMap<K, Failures>,
    key: K,
    before: Option<Failures>,
    now_ns: i64,
) {
    if !table.contains_key(&key) && table.len() >= REMEMBERED_MAX {
        table.retain(|_, failures| !failures.is_forgotten(now_ns));
    }
    if !table.contains_key(&key) && table.len() >= REMEMBERED_MAX {
        // The one with the fewest failures: who floods does not get rid of what counts.
        let least = table.iter().min_by_key(|(_, it)| (it.count, it.last_ns));
        let least = least.map(|(key, _)| key.clone());
        if let Some(least) = least {
            table.remove(&least);
        }
    }
    let count = before.map_or(0, |before| before.count).saturating_add(1);
    table.insert(key, Failures { count, last_ns: now_ns });
}

fn uncount<K: Ord>(
    table: &mut BTreeMap<K, Failures>,
    key: &K,
    (at_ns, before_ns): (i64, Option<i64>),
) {
    let Some(failures) = table.get_mut(key) else { return };
    failures.count = failures.count.saturating_sub(1);
    if let (true, Some(before_ns)) = (failures.last_ns == at_ns, before_ns) {
        failures.last_ns = before_ns;
    }
    if failures.count == 0 {
        table.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = NANOS_PER_SECOND;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn the_wait_for_a_name_grows_to_its_longest_and_never_beyond() {
        let mut lock = LockOut::default();
        let mut now_ns = 0;
        for _ in 0..=FREE_OF_NAME {
            lock.begin("anna", ip(1), now_ns).unwrap();
        }
        let mut waits = Vec::new();
        for turn in 0..20 {
            let left_ns = lock.begin("anna", ip(100 + turn), now_ns).unwrap_err();
            waits.push(left_ns / SECOND);
            assert!(lock.begin("anna", ip(100 + turn), now_ns + left_ns - 1).is_err());
            now_ns += left_ns;
            lock.begin("anna", ip(100 + turn), now_ns).unwrap();
        }
        assert_eq!(waits[..8], [2, 4, 8, 16, 32, 64, 128, 256]);
        assert!(waits[8..].iter().all(|wait| *wait == LONGEST_OF_NAME_S), "{waits:?}");
        // Others are not concerned.
        assert!(lock.begin("bert", ip(2), now_ns).is_ok());
        now_ns += FORGOTTEN_AFTER_S * SECOND;
        assert!((0..5).all(|_| lock.begin("anna", ip(3), now_ns).is_ok()));
    }

    #[test]
    fn an_address_waits_whatever_the_names_and_a_network_is_one() {
        let mut lock = LockOut::default();
        let of = |last: u16| Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, last).into();
        for number in 0..=FREE_OF_PLACE {
            let name = format!("n{number}");
            lock.begin(&name, of(u16::try_from(number).unwrap()), 0).unwrap();
        }
        assert_eq!(lock.begin("anna", of(999), 0), Err(2 * SECOND));
        assert!(lock.begin("anna", ip(1), 0).is_ok());
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(place_of(mapped), ip(1));
    }

    #[test]
    fn many_at_once_all_count_from_their_beginning() {
        let mut lock = LockOut::default();
        let taken = (0..1000).filter(|_| lock.begin("anna", ip(1), 0).is_ok()).count();
        assert_eq!(taken, 6);
    }

    #[test]
    fn a_success_forgets_the_failures_of_its_name_and_not_those_of_its_address() {
        let mut lock = LockOut::default();
        for number in 0..FREE_OF_PLACE {
            lock.begin(&format!("n{number}"), ip(1), 0).unwrap();
        }
        for _ in 0..4 {
            lock.begin("anna", ip(2), 0).unwrap();
        }
        let attempt = lock.begin("anna", ip(1), 0).unwrap();
        lock.succeed(&attempt);
        assert!((0..5).all(|_| lock.begin("anna", ip(3), 0).is_ok()));
        let again = lock.begin("bert", ip(1), 0).unwrap();
        assert!(lock.begin("bert", ip(1), 0).is_err(), "it has 21 by then");
        lock.take_back(&again);
        assert!(lock.begin("bert", ip(1), 0).is_ok());
    }

    #[test]
    fn what_is_taken_back_does_not_begin_the_wait_anew() {
        let mut lock = LockOut::default();
        for failure in 0..8 {
            lock.begin("anna", ip(1), failure * 100 * SECOND).unwrap();
        }
        let now_ns = 800 * SECOND;
        // The password is right, and a code is asked for.
        let attempt = lock.begin("anna", ip(1), now_ns).unwrap();
        lock.take_back(&attempt);
        assert!(lock.begin("anna", ip(1), now_ns + 1).is_ok());
    }

    #[test]
    fn who_floods_with_names_does_not_get_rid_of_one_that_counts() {
        let mut lock = LockOut::default();
        for _ in 0..6 {
            lock.begin("anna", ip(1), 0).unwrap();
        }
        for number in 0..2 * REMEMBERED_MAX {
            let from = Ipv6Addr::from_bits(u128::try_from(number).unwrap() << 64);
            lock.begin(&number.to_string(), from.into(), 1).unwrap();
        }
        assert_eq!((lock.names.len(), lock.places.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
        assert!(lock.begin("anna", ip(9), 1).is_err());
    }
}
