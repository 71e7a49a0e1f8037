//! Options that some of many like connections lack, and the listener whose SYN cookies lost them.
//!
//! A listener whose queue of half-open connections is full answers with a SYN cookie, which has
//! space for three bits of segment size only: selective acknowledgements and window scale are lost
//! for the life of the connection, unless the SYN carried a timestamp to hold them (RFC 4987, 3.6;
//! `net/ipv4/syncookies.c`).

use std::collections::BTreeSet;

use network::sockets::SynOptions;

use super::super::watch::{NamespaceHistory, Watch};
use super::group::{Ends, Group, Member, Service, plain};
use crate::finding::{Finding, Remedy, Severity};
use crate::words::{bits_per_second, microseconds, plural, some};

/// Sizes that fit into a cookie (`msstab`), and these less a timestamp.
const COOKIE_MSS: [u32; 8] = [536, 1300, 1440, 1460, 524, 1288, 1428, 1448];
/// The largest window that can be announced without a scale.
const UNSCALED_WINDOW_BITS: u64 = 65_535 * 8;
const BACKLOG: u32 = 1024;

/// What is wrong with the options of a group's connections; those that are in `told`, reported
/// where they came to, are not reported again.
pub(super) fn finding(watch: &Watch, group: &Group<'_>, told: &BTreeSet<Ends>) -> Option<Finding> {
    let history = group.namespace(watch)?;
    let lacks = |member: &&Member<'_>| !lacking(member.last.options, history).is_empty();
    let mut lacking: Vec<&Member<'_>> = group.members.iter().filter(lacks).collect();
    let is_here = matches!(group.service, Service::Here { .. });
    if !is_here {
        lacking.retain(|member| {
            let last = &member.track.last;
            !told.contains(&(plain(last.local), plain(last.remote)))
        });
    }
    let has_cookies = is_here && history.total("TcpExtSyncookiesRecv") > 0;
    // Where no connection has them, they were never offered.
    let some_have_them = lacking.len() < group.members.len();
    if lacking.is_empty() || !(some_have_them || has_cookies) {
        return None;
    }
    Some(if has_cookies {
        of_cookies(watch, group, history, &lacking)
    } else {
        of_others(watch, group, history, &lacking)
    })
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
fn evidence(group: &Group<'_>, lacking: &[&Member<'_>]) -> Vec<String> {
    let mut lines = vec![format!("without: {}", some(lacking.iter().map(|member| member.peer())))];
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
    let is_whole = |member: &&Member<'_>| {
        let options = member.last.options;
        options.sack && options.window_scale
    };
    if let Some(member) = group.members.iter().find(is_whole) {
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
    watch: &Watch,
    group: &Group<'_>,
    history: &NamespaceHistory,
    lacking: &[&Member<'_>],
) -> Finding {
    let mut lines = evidence(group, lacking);
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
    let backlog = group.listeners.iter().map(|listener| listener.last.send_queue).min();
    if let Some(backlog) = backlog {
        lines.push(format!("backlog of the listener: {backlog}"));
    }
    let cause = format!(
        "{} when these connections came, so the kernel answered with SYN cookies. A cookie has \
         space for a segment size only; what else the two sides had agreed on is lost for the life \
         of the connection.",
        match backlog {
            Some(backlog) => format!("The listener's backlog of {backlog} was full"),
            None => "The backlog of the listener, which is gone, was full".to_owned(),
        }
    );
    Finding {
        kind: "tcp.syn_cookies",
        severity: Severity::Problem,
        reach: lacking.len(),
        what: what(watch, group, history, lacking),
        evidence: lines,
        cause,
        remedies: remedies(group, history, backlog),
    }
}

fn remedies(group: &Group<'_>, history: &NamespaceHistory, backlog: Option<u32>) -> Vec<Remedy> {
    let owner = group.listeners.iter().find_map(|listener| listener.owner.as_ref());
    let program = owner.map_or_else(|| "the program".to_owned(), |owner| owner.name.clone());
    let mut remedies = vec![Remedy::by_hand(format!(
        "call listen() with a larger backlog in {program}: at least as many as connect at once, \
         such as {BACKLOG}; its connections come back whole when they are opened anew"
    ))];
    let setting = |name: &str| history.settings.get(name).and_then(|text| text.parse::<u32>().ok());
    for (name, full) in [
        ("somaxconn", "net.core.somaxconn"),
        ("tcp_max_syn_backlog", "net.ipv4.tcp_max_syn_backlog"),
    ] {
        let value = setting(name);
        if value.is_some_and(|value| value < BACKLOG || Some(value) == backlog) {
            let wanted = backlog.unwrap_or(0).saturating_mul(4).max(4096).to_string();
            remedies.push(Remedy::sysctl(format!("allow it: {full} caps it"), full, &wanted));
        }
    }
    if !history.is_on("tcp_timestamps") {
        let what = "switch timestamps on: with them a cookie keeps the options";
        remedies.push(Remedy::sysctl(what, "net.ipv4.tcp_timestamps", "1"));
    }
    remedies
}

fn of_others(
    watch: &Watch,
    group: &Group<'_>,
    history: &NamespaceHistory,
    lacking: &[&Member<'_>],
) -> Finding {
    let is_here = matches!(group.service, Service::Here { .. });
    let cause = if is_here {
        "No SYN cookies were sent here. The other sides did not offer them, or something on the \
         way took them out of the handshake."
    } else {
        "The same service gave them to other connections. Its listener's backlog was full when \
         these came and it answered with SYN cookies, or something on the way took them out."
    };
    let remedy = if is_here {
        format!("compare the SYNs of {} with those of the others", plural(lacking.len(), "client"))
    } else {
        "run this on the other machine, too: see its counter TcpExtSyncookiesSent".to_owned()
    };
    Finding {
        kind: "tcp.options_differ",
        severity: Severity::Warning,
        reach: lacking.len(),
        what: what(watch, group, history, lacking),
        evidence: evidence(group, lacking),
        cause: cause.to_owned(),
        remedies: vec![Remedy::by_hand(remedy)],
    }
}
