//! The tabs and by what their lines go.

use ::diagnose::profile::By;
use ::tui::{Filter, Tab};
use talkers::{DnsGrouping, Grouping};
use view::{DiskGrouping, RecorderGrouping, SocketGrouping, VitalsGrouping};

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

/// What is asked for, in the words of the rooms.
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

const TALKERS: [Grouping; 5] =
    [Grouping::Session, Grouping::Pair, Grouping::Host, Grouping::Port, Grouping::Protocol];
const DNS: [DnsGrouping; 6] = [
    DnsGrouping::Name,
    DnsGrouping::Domain,
    DnsGrouping::Source,
    DnsGrouping::Destination,
    DnsGrouping::Type,
    DnsGrouping::Rcode,
];
const DISK: [DiskGrouping; 3] = [DiskGrouping::Process, DiskGrouping::File, DiskGrouping::Device];
const CPU: [By; 3] = [By::Process, By::Library, By::Function];
const SOCKETS: [SocketGrouping; 4] = [
    SocketGrouping::Socket,
    SocketGrouping::Process,
    SocketGrouping::Peer,
    SocketGrouping::Listener,
];
const HOST: [VitalsGrouping; 7] = [
    VitalsGrouping::Memory,
    VitalsGrouping::System,
    VitalsGrouping::Processors,
    VitalsGrouping::Pressure,
    VitalsGrouping::Disks,
    VitalsGrouping::Network,
    VitalsGrouping::Everything,
];
const RECORDER: [RecorderGrouping; 3] =
    [RecorderGrouping::Recorder, RecorderGrouping::Interface, RecorderGrouping::Disk];

/// A grouping of a tab, by their places.
pub(super) fn wanted(tab: usize, grouping: usize) -> Option<Wanted> {
    Some(match tab {
        0 => Wanted::Talkers(*TALKERS.get(grouping)?),
        1 => Wanted::Dns(*DNS.get(grouping)?),
        2 => Wanted::Disk(*DISK.get(grouping)?),
        3 => Wanted::Cpu(grouping, *CPU.get(grouping)?),
        4 => Wanted::Sockets(*SOCKETS.get(grouping)?),
        5 => Wanted::Host(*HOST.get(grouping)?),
        6 => Wanted::Recorder(*RECORDER.get(grouping)?),
        _ => return None,
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
