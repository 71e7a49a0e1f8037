//! TCP and what its packets go through: every socket of every network namespace for a while, its
//! interfaces, queues, neighbours and connection table, and what is wrong with some of them.

mod findings;
mod history;
mod live;
mod place;
mod recorded;
mod series;
mod tally;
mod watch;

pub use history::{
    ConntrackHistory, LinkHistory, NamespaceHistory, NeighbourHistory, QueueHistory,
};
pub use live::Live;
pub use network::Error;
pub use network::sockets::{NamespaceLook, Owner, TcpInfo, TcpSocket, TcpState};
pub use place::Place;
pub use recorded::Handshakes;
pub use series::{Follower, Point, Series};
pub use tally::{AttemptBy, Failed, Failures, Question, UdpTrack};
pub use watch::{Key, Source, TcpLook, Track, TrackLooks, Watch, watch};

use ::findings::Diagnosis;
use ::findings::words::plural;

/// What the watch found.
pub fn diagnose(watch: &Watch) -> Diagnosis {
    let findings = findings::all(watch);
    let looks = usize::try_from(watch.looks).unwrap_or(usize::MAX);
    let looked_at = format!(
        "{} in {}, {} in {:.1} s",
        plural(watch.tracks.len(), "TCP socket"),
        plural(watch.namespaces.len(), "network namespace"),
        plural(looks, "look"),
        watch.seconds(),
    );
    Diagnosis {
        looked_at: vec![looked_at],
        shares: Vec::new(),
        findings,
        unseen: watch.unseen.iter().cloned().collect(),
    }
    .ranked()
}

/// Pairs of connections that should be alike and are not: a slow one and a fast one each, to be
/// shown beside each other.
pub fn contrasts(watch: &Watch) -> Vec<(Key, Key)> {
    findings::contrasts(watch)
}
