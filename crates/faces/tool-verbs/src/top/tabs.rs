//! The tabs and by what their lines go.

use ::tui::{Filter, Tab};
use ::vitals::profile::By;
use machine_view::{DiskGrouping, RecorderGrouping, SocketGrouping, VitalsGrouping};
use talkers::{DnsGrouping, Grouping};

/// All tabs.
pub(super) static TABS: [Tab; 7] = [
    Tab {
        name: "talkers",
        groupings: &["session", "pair", "host", "port", "protocol"],
        filter: Filter::Query,
    },
    Tab {
        name: "dns",
        groupings: &["name", "domain", "source", "destination", "type", "answer"],
        filter: Filter::Query,
    },
    Tab { name: "disk", groupings: &["process", "file", "device"], filter: Filter::Words },
    Tab { name: "cpu", groupings: &["process", "library", "function"], filter: Filter::Words },
    Tab {
        name: "sockets",
        groupings: &["socket", "process", "peer", "listener"],
        filter: Filter::Query,
    },
    Tab {
        name: "host",
        groupings: &["memory", "system", "processor", "pressure", "disk", "interface", "figure"],
        filter: Filter::Words,
    },
    Tab { name: "recorder", groupings: &["recorder", "interface", "disk"], filter: Filter::Words },
];

/// What is asked for, as the crates name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    Talkers(Grouping),
    Dns(DnsGrouping),
    Disk(DiskGrouping),
    /// Processors, by the place of the grouping.
    Cpu(usize, By),
    Sockets(SocketGrouping),
    Host(VitalsGrouping),
    Recorder(RecorderGrouping),
}

/// A grouping of a tab, by their places.
pub(super) fn wanted(tab: usize, grouping: usize) -> Option<Wanted> {
    let tab = TABS.get(tab)?;
    let name = *tab.groupings.get(grouping)?;
    Some(match (tab.name, name) {
        ("talkers", "session") => Wanted::Talkers(Grouping::Session),
        ("talkers", "pair") => Wanted::Talkers(Grouping::Pair),
        ("talkers", "host") => Wanted::Talkers(Grouping::Host),
        ("talkers", "port") => Wanted::Talkers(Grouping::Port),
        ("talkers", "protocol") => Wanted::Talkers(Grouping::Protocol),
        ("dns", "name") => Wanted::Dns(DnsGrouping::Name),
        ("dns", "domain") => Wanted::Dns(DnsGrouping::Domain),
        ("dns", "source") => Wanted::Dns(DnsGrouping::Source),
        ("dns", "destination") => Wanted::Dns(DnsGrouping::Destination),
        ("dns", "type") => Wanted::Dns(DnsGrouping::Type),
        ("dns", "answer") => Wanted::Dns(DnsGrouping::Rcode),
        ("disk", "process") => Wanted::Disk(DiskGrouping::Process),
        ("disk", "file") => Wanted::Disk(DiskGrouping::File),
        ("disk", "device") => Wanted::Disk(DiskGrouping::Device),
        ("cpu", "process") => Wanted::Cpu(grouping, By::Process),
        ("cpu", "library") => Wanted::Cpu(grouping, By::Library),
        ("cpu", "function") => Wanted::Cpu(grouping, By::Function),
        ("sockets", "socket") => Wanted::Sockets(SocketGrouping::Socket),
        ("sockets", "process") => Wanted::Sockets(SocketGrouping::Process),
        ("sockets", "peer") => Wanted::Sockets(SocketGrouping::Peer),
        ("sockets", "listener") => Wanted::Sockets(SocketGrouping::Listener),
        ("host", "memory") => Wanted::Host(VitalsGrouping::Memory),
        ("host", "system") => Wanted::Host(VitalsGrouping::System),
        ("host", "processor") => Wanted::Host(VitalsGrouping::Processors),
        ("host", "pressure") => Wanted::Host(VitalsGrouping::Pressure),
        ("host", "disk") => Wanted::Host(VitalsGrouping::Disks),
        ("host", "interface") => Wanted::Host(VitalsGrouping::Network),
        ("host", "figure") => Wanted::Host(VitalsGrouping::Everything),
        ("recorder", "recorder") => Wanted::Recorder(RecorderGrouping::Recorder),
        ("recorder", "interface") => Wanted::Recorder(RecorderGrouping::Interface),
        ("recorder", "disk") => Wanted::Recorder(RecorderGrouping::Disk),
        (tab, grouping) => unreachable!("{tab} has no grouping {grouping}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_grouping_of_each_tab_is_there_and_no_other() {
        for (place, tab) in TABS.iter().enumerate() {
            let count = tab.groupings.len();
            assert!((0..count).all(|grouping| wanted(place, grouping).is_some()), "{}", tab.name);
            assert_eq!(wanted(place, count), None, "{}", tab.name);
        }
        assert_eq!(wanted(TABS.len(), 0), None);
    }
}
