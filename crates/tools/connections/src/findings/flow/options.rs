//! Options that some of many like connections lack, and the listener whose SYN cookies lost them.
//!
//! A listener whose queue of half-open connections is full answers with a SYN cookie, which has
//! space for three bits of segment size only: selective acknowledgements and window scale are lost
//! for the life of the connection, unless the SYN carried a timestamp to hold them (RFC 4987, 3.6;
//! `net/ipv4/syncookies.c`).

use std::collections::BTreeSet;

use network::sockets::SynOptions;

use crate::findings::ends::plain;
use crate::findings::explain::Found;
use crate::findings::group::{self, Group, Member, Service, Told};
use crate::findings::machine::Machine;
use crate::history::NamespaceHistory;
use crate::watch::Watch;
use findings::words::{bits_per_second, microseconds, plural, some};
use findings::{Finding, Remedy, Severity};

/// Sizes that fit into a cookie (`msstab`), and these less a timestamp.
const COOKIE_MSS: [u32; 8] = [536, 1300, 1440, 1460, 524, 1288, 1428, 1448];
/// The largest window that can be announced without a scale.
const UNSCALED_WINDOW_BITS: u64 = 65_535 * 8;
const BACKLOG: u32 = 1024;

/// What is wrong with the options of a group's connections; those that are in `told`, reported
/// where they came to, are not reported again.
pub(super) fn finding(machine: &Machine<'_>, group: &Group<'_>, told: &Told) -> Option<Found> {
    let history = group.namespace(machine.watch)?;
    let lacks = |member: &&Member<'_>| !lacking(member.last.options, history).is_empty();
    let mut lacking: Vec<&Member<'_>> = group.members.iter().filter(lacks).collect();
    let is_here = matches!(group.service, Service::Here { .. });
    if !is_here {
        lacking.retain(|member| {
            let last = &member.track.last;
            !told.contains(&(plain(last.local), plain(last.remote)))
        });
    }
    // Where no connection has them, they were never offered, but for what cookies lost.
    let some_have_them = lacking.len() < group.members.len();
    if lacking.is_empty() {
        return None;
    }
    let finding = match cookies(group, history, &lacking).filter(|_| is_here) {
        Some(why) => of_cookies(machine, group, history, &lacking, why),
        None if some_have_them => of_others(machine, group, history, &lacking),
        None => return None,
    };
    Some(Found::new(finding, group::path(machine, lacking.into_iter())))
}

/// Why the kernel sent the cookies that these connections were made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cookies {
    /// `tcp_syncookies=2`: every SYN is answered so.
    Forced,
    /// The queue of half-open connections was full.
    Overflow,
    /// One or the other, before we looked: `TCPReqQFullDoCookies` counts both
    /// (`tcp_syn_flood_action`).
    Before,
}

/// Whether these connections were made of cookies. That there were some in this namespace says
/// nothing of these: clients that offer no options are like them. A connection with timestamps was
/// not robbed by a cookie, which keeps the other options in them.
fn cookies(
    group: &Group<'_>,
    history: &NamespaceHistory,
    lacking: &[&Member<'_>],
) -> Option<Cookies> {
    let received = history.total("TcpExtSyncookiesRecv");
    let count = u64::try_from(lacking.len()).unwrap_or(u64::MAX);
    let has_timestamps = lacking.iter().any(|member| member.last.options.timestamps);
    if received == 0 || has_timestamps {
        return None;
    }
    let is_of_these = is_new(history, lacking)
        || received == count
        || (received >= count && same_hosts_have_them(group, lacking));
    let is_full = history.gained("TcpExtTCPReqQFullDoCookies") > 0;
    is_of_these.then_some(match history.number("tcp_syncookies") {
        Some(2) => Cookies::Forced,
        _ if is_full => Cookies::Overflow,
        _ => Cookies::Before,
    })
}

/// Connections were made of cookies, and some of these came, while we looked.
fn is_new(history: &NamespaceHistory, lacking: &[&Member<'_>]) -> bool {
    history.gained("TcpExtSyncookiesRecv") > 0 && lacking.iter().any(|member| member.track.is_new)
}

/// Each of their hosts has another connection with the options: it offers them.
fn same_hosts_have_them(group: &Group<'_>, lacking: &[&Member<'_>]) -> bool {
    let host = |member: &Member<'_>| plain(member.track.last.remote).ip();
    let whole: BTreeSet<_> =
        group.members.iter().filter(|member| is_whole(member)).map(host).collect();
    lacking.iter().all(|member| whole.contains(&host(member)))
}

fn is_whole(member: &Member<'_>) -> bool {
    let options = member.last.options;
    options.sack && options.window_scale
}

/// Names of the options that the settings allow and the connection does not have. Timestamps alone
/// cost nothing that is felt.
fn lacking(options: SynOptions, history: &NamespaceHistory) -> Vec<&'static str> {
    let all = [
        (options.sack, "tcp_sack", "selective acknowledgements"),
        (options.window_scale, "tcp_window_scaling", "window scale"),
    ];
    let missing = all.iter().filter(|(has, setting, _)| !has && history.is_on(setting));
    missing.map(|(_, _, name)| *name).collect()
}

fn what(
    watch: &Watch,
    group: &Group<'_>,
    history: &NamespaceHistory,
    of: &[&Member<'_>],
) -> String {
    let first = of.first().map(|member| lacking(member.last.options, history));
    let names = first.unwrap_or_default().join(" and ");
    let all = group.members.len();
    let name = group.name(watch);
    let verb = if of.len() == 1 { "has" } else { "have" };
    format!("{} of {all} connections to {name} {verb} no {names}", of.len())
}

/// What both kinds have to show.
fn evidence(machine: &Machine<'_>, group: &Group<'_>, lacking: &[&Member<'_>]) -> Vec<String> {
    let without = some(lacking.iter().map(|member| member.line(machine)));
    let mut lines = vec![format!("without: {without}")];
    let describe = |member: &Member<'_>| {
        let info = member.last;
        format!(
            "congestion window {}, segments of {} bytes, round trip {}, at most {}",
            info.congestion_window,
            info.send_mss,
            microseconds(info.rtt_us),
            bits_per_second(possible(member)),
        )
    };
    if let Some(member) = lacking.first() {
        lines.push(format!("one of them: {}", describe(member)));
    }
    if let Some(member) = group.members.iter().find(|member| is_whole(member)) {
        lines.push(format!("one with all options: {}", describe(member)));
    }
    if let Some(rtt_us) = lacking.iter().map(|member| member.last.rtt_us).max()
        && lacking.iter().any(|member| !member.last.options.window_scale)
        && rtt_us > 0
    {
        let ceiling = UNSCALED_WINDOW_BITS * 1_000_000 / u64::from(rtt_us);
        let (rtt, ceiling) = (microseconds(rtt_us), bits_per_second(ceiling));
        lines
            .push(format!("without window scale: no more than {ceiling} at a round trip of {rtt}"));
    }
    lines
}

/// What the congestion window allows, in bits a second.
fn possible(member: &Member<'_>) -> u64 {
    let info = member.last;
    let window_bits = u64::from(info.congestion_window) * u64::from(info.send_mss) * 8;
    window_bits * 1_000_000 / u64::from(info.rtt_us.max(1))
}

fn of_cookies(
    machine: &Machine<'_>,
    group: &Group<'_>,
    history: &NamespaceHistory,
    lacking: &[&Member<'_>],
    why: Cookies,
) -> Finding {
    let mut lines = evidence(machine, group, lacking);
    let odd = lacking.iter().filter(|member| COOKIE_MSS.contains(&member.last.send_mss)).count();
    if odd > 0 {
        lines.push(format!("{odd} with a segment size that fits into a SYN cookie"));
    }
    for (name, meaning) in [
        ("TcpExtSyncookiesSent", "SYN cookies sent"),
        ("TcpExtSyncookiesRecv", "connections made of a SYN cookie"),
        ("TcpExtTCPReqQFullDoCookies", "times that the queue of half-open connections was full"),
    ] {
        let (total, gained) = (history.total(name), history.gained(name));
        lines.push(format!("{name}: {total} {meaning}, {gained} while we looked"));
    }
    let setting = history.number("tcp_syncookies");
    lines.extend(setting.map(|value| format!("net.ipv4.tcp_syncookies: {value}")));
    let backlog = group.listeners.iter().map(|listener| listener.last.send_queue).min();
    if let Some(backlog) = backlog {
        lines.push(format!("backlog of the listener: {backlog}"));
    }
    let reason = match (why, backlog) {
        (Cookies::Forced, _) => format!(
            "In {} net.ipv4.tcp_syncookies is 2: the kernel answers every SYN with a cookie, \
             whatever the backlog.",
            history.place.name
        ),
        (Cookies::Before, backlog) => {
            let backlog = backlog.map_or_else(String::new, |backlog| format!(" of {backlog}"));
            format!(
                "The kernel answered with SYN cookies when these connections came: the \
                 listener's backlog{backlog} was full then, or net.ipv4.tcp_syncookies was 2."
            )
        }
        (Cookies::Overflow, Some(backlog)) => format!(
            "The listener's backlog of {backlog} was full when these connections came, so the \
             kernel answered with SYN cookies."
        ),
        (Cookies::Overflow, None) => "The backlog of the listener, which is gone, was full when \
             these connections came, so the kernel answered with SYN cookies."
            .to_owned(),
    };
    let loss = "A cookie has space for a segment size only; what else the two sides had agreed on \
                is lost for the life of the connection.";
    Finding {
        kind: "tcp.syn_cookies",
        severity: Severity::Problem,
        reach: lacking.len(),
        what: what(machine.watch, group, history, lacking),
        evidence: lines,
        cause: format!("{reason} {loss}"),
        remedies: remedies(group, history, (why, backlog)),
    }
}

fn remedies(
    group: &Group<'_>,
    history: &NamespaceHistory,
    (why, backlog): (Cookies, Option<u32>),
) -> Vec<Remedy> {
    let enter = &history.place.enter;
    let mut remedies = match why {
        Cookies::Forced => vec![Remedy::sysctl(
            format!("answer with cookies only when a queue is full, in {}", history.place.name),
            "net.ipv4.tcp_syncookies",
            "1",
        )],
        Cookies::Before => {
            let anew = "open these connections anew: they come back whole, unless the queue is \
                        full again";
            let mut remedies = vec![Remedy::by_hand(anew)];
            remedies.extend(larger_backlog(group, history, backlog));
            remedies
        }
        Cookies::Overflow => larger_backlog(group, history, backlog),
    };
    if !history.is_on("tcp_timestamps") {
        let what = "switch timestamps on: with them a cookie keeps the options";
        remedies.push(Remedy::sysctl(what, "net.ipv4.tcp_timestamps", "1"));
    }
    remedies.into_iter().map(|remedy| remedy.entered_by(enter)).collect()
}

fn larger_backlog(
    group: &Group<'_>,
    history: &NamespaceHistory,
    backlog: Option<u32>,
) -> Vec<Remedy> {
    let owner = group.listeners.iter().find_map(|listener| listener.owner.as_ref());
    let program = owner.map_or_else(|| "the program".to_owned(), |owner| owner.name.clone());
    let wanted = backlog.unwrap_or(0).saturating_mul(4).max(BACKLOG);
    let mut remedies = vec![Remedy::by_hand(format!(
        "call listen() with a larger backlog in {program}: at least as many as connect at once, \
         such as {wanted}; its connections come back whole when they are opened anew"
    ))];
    for (name, full) in [
        ("somaxconn", "net.core.somaxconn"),
        ("tcp_max_syn_backlog", "net.ipv4.tcp_max_syn_backlog"),
    ] {
        if history.number(name).is_some_and(|value| value < wanted) {
            let value = wanted.max(4096).to_string();
            remedies.push(Remedy::sysctl(format!("allow it: {full} caps it"), full, &value));
        }
    }
    remedies
}

fn of_others(
    machine: &Machine<'_>,
    group: &Group<'_>,
    history: &NamespaceHistory,
    lacking: &[&Member<'_>],
) -> Finding {
    let is_here = matches!(group.service, Service::Here { .. });
    let received = history.total("TcpExtSyncookiesRecv");
    let cause = if is_here && received == 0 {
        "No SYN cookies were sent here. The other sides did not offer them, or something on the \
         way took them out of the handshake."
    } else if is_here {
        "What was seen cannot tell: the other sides did not offer them, something on the way took \
         them out of the handshake, or these are among the connections that were made of SYN \
         cookies at some time."
    } else {
        "The same service gave them to other connections. Its listener's backlog was full when \
         these came and it answered with SYN cookies, or something on the way took them out."
    };
    let remedy = if is_here {
        format!("compare the SYNs of {} with those of the others", plural(lacking.len(), "client"))
    } else {
        "run this on the other machine, too: see its counter TcpExtSyncookiesSent".to_owned()
    };
    let mut lines = evidence(machine, group, lacking);
    if is_here && received > 0 {
        lines.push(format!(
            "TcpExtSyncookiesRecv: {received} connections of this namespace were made of a SYN \
             cookie, {} while we looked",
            history.gained("TcpExtSyncookiesRecv")
        ));
    }
    Finding {
        kind: "tcp.options_differ",
        severity: Severity::Warning,
        reach: lacking.len(),
        what: what(machine.watch, group, history, lacking),
        evidence: lines,
        cause: cause.to_owned(),
        remedies: vec![Remedy::by_hand(remedy)],
    }
}
