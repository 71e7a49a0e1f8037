//! Queueing disciplines with what they have counted (`RTM_GETQDISC`).

use std::io;

use host::native::{u32_of, u64_of};

use crate::netlink::{attributes, find_attribute, text_of};
use crate::route::dump;

/// `linux/rtnetlink.h`
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
/// `linux/gen_stats.h`
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// `linux/pkt_sched.h`
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_H_INGRESS: u32 = 0xffff_fff1;
/// `struct tcmsg`
const HEADER: usize = 20;

/// Where a queueing discipline is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QueuePlace {
    /// What is sent passes it first; it counts what those inside of it count.
    Root,
    /// It has no queue: filters on what was received, such as policers, count here.
    Ingress,
    /// Inside of another one.
    Inner,
}

/// A queueing discipline at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Number of its interface.
    pub link: u32,
    /// What it is called within its interface; 0 of those that the kernel made.
    pub handle: u32,
    /// What it is inside of.
    pub parent: u32,
    /// Where it is.
    pub place: QueuePlace,
    /// Name of the discipline, such as `fq_codel`.
    pub kind: String,
    /// Packets that went through; it wraps.
    pub packets: u32,
    /// Bytes that went through.
    pub bytes: u64,
    /// Packets that were dropped; it wraps.
    pub drops: u32,
    /// How often a packet had to wait for the rate that is allowed; it wraps.
    pub overlimits: u32,
    /// Bytes that wait.
    pub backlog_bytes: u32,
    /// Packets that wait.
    pub backlog_packets: u32,
}

/// Those of the namespace that this thread is in.
pub(super) fn all() -> io::Result<Vec<Queue>> {
    let mut queues = Vec::new();
    dump(RTM_GETQDISC, &[0; HEADER], &mut |message| {
        if message.kind == RTM_NEWQDISC {
            queues.extend(queue(message.body));
        }
    })?;
    Ok(queues)
}

/// `struct tcmsg` and its attributes; `None` of those that hold nothing (`noqueue`).
pub(super) fn queue(body: &[u8]) -> Option<Queue> {
    let word = |bytes: &[u8], at: usize| Some(u32_of(*bytes.get(at..)?.first_chunk()?));
    let (link, handle, parent) = (word(body, 4)?, word(body, 8)?, word(body, 12)?);
    let rest = body.get(HEADER..)?;
    let kind = text_of(find_attribute(rest, TCA_KIND)?);
    if kind == "noqueue" {
        return None;
    }
    let place = match parent {
        TC_H_ROOT => QueuePlace::Root,
        TC_H_INGRESS => QueuePlace::Ingress,
        _ => QueuePlace::Inner,
    };
    let (bytes, packets, drops) = (0, 0, 0);
    let (overlimits, backlog_bytes, backlog_packets) = (0, 0, 0);
    let mut queue = Queue {
        link,
        handle,
        parent,
        place,
        kind,
        packets,
        bytes,
        drops,
        overlimits,
        backlog_bytes,
        backlog_packets,
    };
    for (kind, value) in attributes(find_attribute(rest, TCA_STATS2).unwrap_or_default()) {
        let number = |at: usize| word(value, at).unwrap_or(0);
        match kind {
            TCA_STATS_BASIC => {
                queue.bytes = value.first_chunk().copied().map_or(0, u64_of);
                queue.packets = number(8);
            }
            // struct gnet_stats_queue: length, backlog, drops, requeues, overlimits.
            TCA_STATS_QUEUE => {
                queue.backlog_packets = number(0);
                queue.backlog_bytes = number(4);
                queue.drops = number(8);
                queue.overlimits = number(16);
            }
            _ => {}
        }
    }
    Some(queue)
}

#[cfg(test)]
mod tests {
    use host::native::u32_bytes;

    use super::*;
    use crate::netlink::attribute;

    #[test]
    fn counts_of_a_queue_are_read() {
        let words = |words: &[u32]| words.iter().copied().flat_map(u32_bytes).collect::<Vec<_>>();
        let basic = attribute(TCA_STATS_BASIC, &words(&[1500, 0, 7, 0]));
        let counts = attribute(TCA_STATS_QUEUE, &words(&[2, 3000, 5, 1, 9]));
        let body = [
            words(&[0, 3, 0x8001_0000, TC_H_ROOT, 2]),
            attribute(TCA_KIND, b"tbf\0"),
            attribute(TCA_STATS2, &[basic, counts].concat()),
        ]
        .concat();
        let found = queue(&body).unwrap();
        assert_eq!((found.link, &*found.kind, found.place), (3, "tbf", QueuePlace::Root));
        assert_eq!((found.bytes, found.packets, found.drops), (1500, 7, 5));
        assert_eq!((found.backlog_bytes, found.backlog_packets), (3000, 2));
        assert_eq!(found.overlimits, 9);
        assert_eq!(queue(&body[..HEADER]), None);
        assert!(all().is_ok());
    }
}
