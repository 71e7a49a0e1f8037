//! TCP: every socket of every network namespace for a while, and what is wrong with some of them.

mod findings;
mod recorded;
mod series;
mod watch;

pub use network::Error;
pub use network::sockets::{NamespaceLook, Owner, TcpInfo, TcpSocket, TcpState};
pub use recorded::Handshakes;
pub use series::{Follower, Point, Series};
pub use watch::{Key, Live, NamespaceHistory, Place, Source, TcpLook, Track, Watch, watch};

use crate::diagnosis::Diagnosis;
use crate::words::plural;

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
