//! Round trips are many times the least one while a connection fills a queue.
//!
//! Mechanism: the sender has more under way than the way holds, and the rest stands in a queue in
//! front of its narrowest part; each packet, also of others, waits for what is before it. Refuted
//! by a sender that has little under way or is held up by its program or its send buffer, by short
//! segments (their acknowledgements are delayed by the other side), and by a receiver that does not
//! read. The least round trip is that of five minutes: where no queue is seen and round trips stay
//! the same whatever is under way, the way itself may have become longer, and it is a note.

use network::sockets::TcpInfo;
use units::ByteSize;

use crate::findings::explain::{self, Found};
use crate::findings::group::{self, Group, Member, gained};
use crate::findings::machine::Machine;
use crate::history::QueueHistory;
use findings::words::{bits_per_second, microseconds, some};
use findings::{Finding, Remedy, Severity};

/// So many times the least round trip.
const TIMES: u64 = 5;
/// And so much longer, in microseconds: less is hardly felt.
const LONGER_US: u64 = 60_000;
/// Full segments acknowledged during the watch.
const SEGMENTS_MIN: u64 = 50;
/// Round trips of a queue move with what is in it: by a part in so many at least.
const MOVES_SHARE: u32 = 8;

pub(super) fn finding(machine: &Machine<'_>, group: &Group<'_>) -> Option<Found> {
    let hit: Vec<&Member<'_>> =
        group.members.iter().filter(|member| is_bloated(machine, member)).collect();
    let worst = hit.iter().max_by_key(|member| member.track.looks.rtt_us_mean())?;
    let (mean, least) = (worst.track.looks.rtt_us_mean(), worst.last.min_rtt_us?);
    let queue = queue(machine, worst);
    let mut evidence = vec![
        format!(
            "round trip {} in the mean, {} at least: {}",
            microseconds(u32::try_from(mean).unwrap_or(u32::MAX)),
            microseconds(least),
            some(hit.iter().map(|member| member.line(machine)))
        ),
        format!(
            "up to {} segments of {} bytes under way, {} acknowledged",
            worst.track.looks.unacked_max,
            worst.last.send_mss,
            bits_per_second(rate(machine, worst))
        ),
    ];
    let cause = match &queue {
        Some((name, queue)) => {
            evidence.push(format!(
                "the queue of {name} ({}) held up to {}, and something at {} of {} looks",
                queue.last.kind,
                ByteSize(queue.backlog_bytes_max.into()),
                queue.waiting_looks,
                queue.looks
            ));
            format!(
                "The queue of {name} is longer than its rate needs: what is sent fills it, and \
                 everything that goes that way waits behind it."
            )
        }
        None => "A queue on the way is longer than its rate needs (a router, a modem, a shaper): \
                 what is sent fills it, and everything that goes that way waits behind it."
            .to_owned(),
    };
    let (least, most) = worst.track.looks.rtt_us_range.unwrap_or_default();
    let [short, long] = [least, most].map(microseconds);
    evidence.push(format!("from look to look it was {short} to {long}"));
    let name = group.name(machine.watch);
    let finding = if queue.is_none() && !hit.iter().any(|member| moves(member)) {
        longer_way(&name, hit.len(), evidence)
    } else {
        Finding {
            kind: "tcp.bufferbloat",
            severity: Severity::Warning,
            reach: hit.len(),
            what: format!("what is sent to {name} waits in a queue for most of its round trip"),
            evidence,
            cause,
            remedies: remedies(),
        }
    };
    Some(Found::new(finding, group::path(machine, hit.into_iter())))
}

fn remedies() -> Vec<Remedy> {
    vec![
        Remedy::by_hand(
            "a queueing discipline that keeps queues short at the narrow part: fq_codel or cake, \
             or a smaller limit of the shaper's queue (tc qdisc)",
        ),
        Remedy::by_hand(
            "a congestion control that does not fill queues in the sender: \
             net.ipv4.tcp_congestion_control=bbr",
        ),
    ]
}

/// Round trips change from look to look, as those of a queue do.
fn moves(member: &Member<'_>) -> bool {
    let (least, most) = member.track.looks.rtt_us_range.unwrap_or_default();
    most.saturating_sub(least) >= most / MOVES_SHARE
}

fn longer_way(name: &str, reach: usize, evidence: Vec<String>) -> Finding {
    Finding {
        kind: "tcp.longer_way",
        severity: Severity::Note,
        reach,
        what: format!("round trips to {name} are many times the least one, and do not change"),
        evidence,
        cause: "What was seen cannot tell: the way has become longer (another route, another \
                place of the service) since the least one was measured, within the last five \
                minutes, or a queue that nobody here sees stays equally full."
            .to_owned(),
        remedies: vec![Remedy::by_hand(
            "see where the time goes, and compare with what is usual: tracepath, mtr",
        )],
    }
}

fn rate(machine: &Machine<'_>, member: &Member<'_>) -> u64 {
    let bits = u128::from(member.gained(|info| info.bytes_acked)) * 8 * 1_000_000_000;
    u64::try_from(bits / u128::from(machine.watch.ns_positive())).unwrap_or(u64::MAX)
}

fn is_bloated(machine: &Machine<'_>, member: &Member<'_>) -> bool {
    let info = member.last;
    let acked = member.gained(|info| info.bytes_acked);
    let segments = gained(member.first, member.last, |info: &TcpInfo| info.data_segments_out);
    let busy = member.gained(|info| info.busy_us);
    let receiver = member.gained(|info| info.receiver_limited_us);
    let mss = u64::from(info.send_mss);
    let is_full = acked >= SEGMENTS_MIN * mss && acked * 2 >= segments * mss;
    let is_busy = busy.saturating_mul(2000) >= machine.watch.ns_positive();
    let reads = receiver * 2 <= busy;
    let Some(least) = info.min_rtt_us.filter(|&least| least > 0).map(u64::from) else {
        return false;
    };
    let mean = member.track.looks.rtt_us_mean();
    let waits = mean >= least * TIMES && mean >= least + LONGER_US;
    // What a program or a buffer limits does not fill a queue.
    let looks = &member.track.looks;
    let is_held = looks.app_limited.saturating_mul(5) >= looks.all.saturating_mul(4)
        || member.gained(|info| info.buffer_limited_us) * 2 > busy;
    is_full && is_busy && reads && waits && !is_held
}

/// The queue of this machine that it stands in, where there is one.
fn queue<'w>(machine: &Machine<'w>, member: &Member<'_>) -> Option<(String, &'w QueueHistory)> {
    let path = group::path(machine, core::iter::once(member));
    let queues = machine.watch.namespaces.iter().flat_map(|(inode, history)| {
        let is_passed = |link: u32| {
            path.interfaces.contains(&(*inode, link)) || explain::forwards(machine, *inode)
        };
        let waits = move |queue: &&QueueHistory| {
            is_passed(queue.last.link) && queue.waiting_looks * 2 >= queue.looks
        };
        history.queues.values().filter(waits).filter_map(move |queue| {
            let name = &history.links.get(&queue.last.link)?.last.name;
            Some((format!("{name}{}", machine.inside(*inode)), queue))
        })
    });
    queues.max_by_key(|(_, queue)| queue.backlog_bytes_max)
}
