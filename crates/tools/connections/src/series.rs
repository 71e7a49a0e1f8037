//! What connections did from look to look.

use std::collections::BTreeMap;
use std::sync::Arc;

use network::sockets::{Owner, TcpSocket, TcpState};
use units::number::between;

use super::watch::{Key, TcpLook};

/// Connections that are followed, the first ones that are seen; a page with more plots is not
/// readable.
const FOLLOWED_MAX: usize = 4096;

/// A connection at one look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Point {
    /// Nanoseconds since the first look of all.
    pub after_ns: u64,
    /// Congestion window in segments.
    pub congestion_window: u32,
    /// Smoothed round trip in microseconds.
    pub rtt_us: u32,
    /// Latest delivery rate in bytes a second; 0 where the kernel does not report it.
    pub delivery_rate: u64,
}

/// A connection through all looks.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// As it was seen last.
    pub socket: TcpSocket,
    /// Process that owns the socket.
    pub owner: Option<Arc<Owner>>,
    /// One for each look at which it was there.
    pub points: Vec<Point>,
    /// Bytes that it had carried, both ways, and sent, when it was seen first.
    before: (u64, u64),
}

impl Series {
    /// Bytes that it carried meanwhile, both ways.
    pub fn carried(&self) -> u64 {
        carried(&self.socket).saturating_sub(self.before.0)
    }

    /// Bytes that it sent meanwhile.
    pub fn sent(&self) -> u64 {
        sent(&self.socket).saturating_sub(self.before.1)
    }
}

/// Connections as they are looked at.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    /// When the first look was, in time since boot.
    begun_ns: Option<i64>,
    series: BTreeMap<Key, Series>,
}

impl Follower {
    /// Takes a look in, with its time since boot.
    pub fn take(&mut self, at_ns: i64, look: &TcpLook) {
        let after_ns = between(*self.begun_ns.get_or_insert(at_ns), at_ns);
        for (place, seen) in &look.namespaces {
            let sockets = seen.sockets.iter().filter(|it| it.state == TcpState::Established);
            for socket in sockets {
                let key = Key { namespace: place.inode, cookie: socket.cookie };
                let is_known = self.series.contains_key(&key);
                let Some(info) = socket.info else { continue };
                if !is_known && self.series.len() == FOLLOWED_MAX {
                    continue;
                }
                let series = self.series.entry(key).or_insert_with(|| Series {
                    socket: socket.clone(),
                    owner: None,
                    points: Vec::new(),
                    before: (carried(socket), sent(socket)),
                });
                series.socket = socket.clone();
                let owner = look.owners.get(&socket.inode);
                series.owner = series.owner.take().or_else(|| owner.cloned());
                series.points.push(Point {
                    after_ns,
                    congestion_window: info.congestion_window,
                    rtt_us: info.rtt_us,
                    delivery_rate: info.delivery_rate.unwrap_or(0),
                });
            }
        }
    }

    /// At most so many connections: first those of the pairs, the slow one before the fast one,
    /// then those that sent most, then those that received most.
    pub fn chosen(mut self, pairs: &[(Key, Key)], count: usize) -> Vec<Series> {
        let keys = pairs.iter().flat_map(|(slow, fast)| [slow, fast]);
        let mut chosen: Vec<Series> = keys.filter_map(|key| self.series.remove(key)).collect();
        let mut others: Vec<Series> = self.series.into_values().collect();
        others.sort_by_key(|series| core::cmp::Reverse((series.sent(), series.carried())));
        chosen.extend(others);
        chosen.truncate(count);
        chosen
    }
}

fn sent(socket: &TcpSocket) -> u64 {
    socket.info.and_then(|info| info.bytes_acked).unwrap_or(0)
}

fn carried(socket: &TcpSocket) -> u64 {
    let info = socket.info.unwrap_or_default();
    info.bytes_acked.unwrap_or(0) + info.bytes_received.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use network::sockets::{NamespaceLook, TcpInfo};

    use super::super::place::Place;
    use super::*;

    fn look(sockets: &[(u64, u64)]) -> TcpLook {
        let ends = ["10.0.0.1:80", "10.0.0.2:4000"].map(|end| end.parse().unwrap());
        let socket = |&(cookie, bytes): &(u64, u64)| TcpSocket {
            inode: 1,
            cookie,
            info: Some(TcpInfo {
                congestion_window: 10,
                bytes_acked: Some(bytes),
                ..TcpInfo::default()
            }),
            ..TcpSocket::new(TcpState::Established, ends)
        };
        let sockets = sockets.iter().map(socket).collect();
        let seen = NamespaceLook { sockets, ..NamespaceLook::default() };
        TcpLook { namespaces: vec![(Place::default(), seen)], ..TcpLook::default() }
    }

    #[test]
    fn those_that_sent_most_meanwhile_come_first_and_pairs_before_them() {
        let mut follower = Follower::default();
        follower.take(70, &look(&[(1, 1_000_000), (2, 0)]));
        follower.take(90, &look(&[(1, 1_000_001), (2, 500), (3, 900_000)]));
        let busiest = follower.clone().chosen(&[], 2);
        let seen: Vec<(u64, u64, usize)> = busiest
            .iter()
            .map(|series| (series.socket.cookie, series.carried(), series.points.len()))
            .collect();
        assert_eq!(seen, [(2, 500, 2), (1, 1, 2)], "what the third carried before is not known");
        let key = |cookie| Key { namespace: 0, cookie };
        let chosen = follower.chosen(&[(key(3), key(1))], 2);
        let cookies: Vec<u64> = chosen.iter().map(|series| series.socket.cookie).collect();
        assert_eq!(cookies, [3, 1]);
        let times = busiest[0].points.iter().map(|point| point.after_ns);
        assert_eq!(times.collect::<Vec<_>>(), [0, 20]);
    }
}
