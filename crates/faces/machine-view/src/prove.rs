//! What a recorder did with numbered packets, and what a recorder says of itself.

use core::time::Duration;

use ::prove::{Account, Ask, Found, Limit, Trial, Verdict};
use page::safe::{json_pretty, printable};
use page::text::{bits, duration, grouped, plural, took};
use serde::Serialize;
use units::ByteSize;

/// A run, in words.
pub fn proved(trial: &Trial) -> String {
    let mut lines = vec![headline(trial)];
    lines.push(offered(trial));
    lines.extend(account(&trial.account));
    lines.push(recorder(trial));
    lines.extend(trial.findings.iter().map(|finding| format!("found: {finding}")));
    lines.extend(trial.notes.iter().map(|line| format!("note: {}", printable(line))));
    lines.join("\n") + "\n"
}

fn headline(trial: &Trial) -> String {
    let account = &trial.account;
    let packets = plural(account.offered, "packet");
    match trial.verdict() {
        Verdict::Lossless => format!("nothing was lost: {packets} came back as they were sent"),
        Verdict::CannotJudge if trial.is_stopped => {
            format!("stopped before the end; nothing was lost of {packets}")
        }
        Verdict::CannotJudge => {
            format!("cannot judge: {} was not reached; nothing was lost", asked(trial.ask))
        }
        Verdict::Lost if account.lost() > 0 => {
            let share = percent(account.lost(), account.offered);
            format!("lost: {} of {packets}, {share}", grouped(account.lost()))
        }
        Verdict::Lost if !trial.is_true() => format!(
            "the recorder reports {} stored, and the volume has {}",
            plural(trial.recorder.stored, "packet"),
            grouped(trial.read),
        ),
        Verdict::Lost => format!("not as they were sent: {packets}"),
    }
}

fn asked(ask: Ask) -> String {
    match ask {
        Ask::Bits(per_second) => bits(per_second),
        Ask::Packets(per_second) => plural(per_second, "packet") + "/s",
        Ask::Top => "top speed".to_owned(),
    }
}

fn percent(part: u64, whole: u64) -> String {
    let thousandths = u128::from(part) * 100_000 / u128::from(whole.max(1));
    format!("{}.{:03} %", thousandths / 1000, thousandths % 1000)
}

fn offered(trial: &Trial) -> String {
    let sent = &trial.sent;
    let rate = sent.packets_per_second().map_or_else(String::new, |per_second| {
        let bits = bits(sent.bits_per_second().unwrap_or_default());
        format!(": {}/s, {bits} of frames", plural(per_second, "packet"))
    });
    let (packets, bytes) = (plural(sent.packets, "packet"), ByteSize(sent.bytes));
    let time = duration(sent.elapsed_ns);
    format!("offered: {packets}, {bytes} in {time}{rate}; asked for {}", asked(trial.ask))
}

/// Where each packet went: the sum, and what else was found.
fn account(account: &Account) -> Vec<String> {
    let &Account { offered, stored, duplicated, reordered, strangers, .. } = account;
    let parts = [vec![format!("{} stored", grouped(stored))], losses(account)].concat();
    let mut lines = vec![format!("account: {} offered = {}", grouped(offered), parts.join(" + "))];
    let others = [
        (duplicated, "more than once"),
        (reordered, "behind a later one of their flow"),
        (strangers, "not sent here"),
    ];
    let there = others.iter().filter(|(count, _)| *count > 0);
    lines.extend(
        there.map(|(count, what)| format!("besides: {}, {what}", plural(*count, "packet"))),
    );
    lines
}

/// Those that there are, with their causes.
fn losses(account: &Account) -> Vec<String> {
    let causes = [
        (account.interface_drops, "interface drops"),
        (account.kernel_drops, "kernel drops"),
        (account.writer_drops, "writer drops"),
        (account.altered, "altered"),
        (account.unexplained, "unexplained"),
    ];
    let there = causes.into_iter().filter(|(count, _)| *count > 0);
    there.map(|(count, cause)| format!("{} {cause}", grouped(count))).collect()
}

fn recorder(trial: &Trial) -> String {
    let recorder = &trial.recorder;
    let nanos = |nanos: u64| took(Duration::from_nanos(nanos));
    let seconds = |time: Option<u64>| time.map_or_else(|| "-".to_owned(), hundredths);
    let freezes = recorder.ring_freezes.map_or_else(String::new, |times| {
        format!("; the kernel's ring was full {}", plural(times, "time"))
    });
    let unindexed = match recorder.unindexed {
        0 => String::new(),
        count => format!("; {} without a row in the index", plural(count, "packet")),
    };
    format!(
        "recorder: {} of CPU time, {} s/GB, {} s/million packets; longest write {}; \
         pool: {} of {} columns used at most{freezes}{unindexed}",
        took(recorder.cpu),
        seconds(recorder.cpu_ns_per_gigabyte),
        seconds(recorder.cpu_ns_per_million_packets),
        nanos(recorder.write_latency_ns_max),
        recorder.pool_columns_used_max,
        recorder.pool_columns,
    )
}

/// Nanoseconds as seconds.
fn hundredths(nanos: u64) -> String {
    format!("{}.{:02}", nanos / 1_000_000_000, nanos / 10_000_000 % 100)
}

/// A run of a search, in one line.
pub fn trial_in_short(trial: &Trial) -> String {
    let result = match trial.verdict() {
        Verdict::Lossless => "nothing lost".to_owned(),
        Verdict::Lost => {
            let Account { offered, .. } = trial.account;
            let lost = trial.account.lost();
            format!("{} lost ({})", percent(lost, offered), losses(&trial.account).join(", "))
        }
        Verdict::CannotJudge => {
            let reached = trial.sent.packets_per_second().unwrap_or_default();
            format!("nothing lost, the sender reached {}/s", plural(reached, "packet"))
        }
    };
    format!("{}: {result}", asked(trial.ask))
}

/// A search, in words.
pub fn limit(found: &Found) -> String {
    let rate = |rate: u64| plural(rate, "packet") + "/s";
    let bits = |per_second: u64| bits_at(found, per_second);
    let end = match found.limit {
        None => "stopped before the end".to_owned(),
        Some(Limit::Recorder { lossless, lossy }) => format!(
            "nothing is lost up to {} ({}); {} are too many",
            rate(lossless),
            bits(lossless),
            rate(lossy)
        ),
        Some(Limit::Sender { lossless }) => format!(
            "nothing is lost up to {} ({}), which is all that the sender reaches",
            rate(lossless),
            bits(lossless)
        ),
        Some(Limit::Nothing { lossy }) => format!("even {} are too many", rate(lossy)),
    };
    let trials = found.trials.iter().map(trial_in_short);
    let best = found.trials.iter().filter(|trial| trial.account.is_flawless());
    let best = best.max_by_key(|trial| trial.sent.packets_per_second());
    let best = best.map(|trial| format!("at the best of them: {}", recorder(trial)));
    [end].into_iter().chain(trials).chain(best).collect::<Vec<_>>().join("\n") + "\n"
}

/// Bits of frames a second at so many packets a second.
fn bits_at(found: &Found, packets_per_second: u64) -> String {
    let sent = found.trials.iter().map(|trial| trial.sent).find(|sent| sent.packets > 0);
    let sent = sent.unwrap_or_default();
    let per_second = u128::from(packets_per_second) * u128::from(sent.bytes) * 8
        / u128::from(sent.packets.max(1));
    bits(u64::try_from(per_second).unwrap_or(u64::MAX))
}

/// A run with its verdict.
#[derive(Serialize)]
struct Judged<'a> {
    verdict: Verdict,
    #[serde(flatten)]
    trial: &'a Trial,
}

impl<'a> Judged<'a> {
    fn of(trial: &'a Trial) -> Self {
        Self { verdict: trial.verdict(), trial }
    }
}

/// A run, as JSON.
pub fn proved_json(trial: &Trial) -> String {
    json_pretty(&Judged::of(trial))
}

/// Where a search ended, and its runs.
#[derive(Serialize)]
struct Ended<'a> {
    verdict: Verdict,
    limited_by: Option<&'static str>,
    lossless_packets_per_s: Option<u64>,
    lossy_packets_per_s: Option<u64>,
    trials: Vec<Judged<'a>>,
}

/// A search, as JSON.
pub fn limit_json(found: &Found) -> String {
    let (limited_by, lossless, lossy) = match found.limit {
        None => (None, None, None),
        Some(Limit::Recorder { lossless, lossy }) => {
            (Some("recorder"), Some(lossless), Some(lossy))
        }
        Some(Limit::Sender { lossless }) => (Some("sender"), Some(lossless), None),
        Some(Limit::Nothing { lossy }) => (Some("recorder"), None, Some(lossy)),
    };
    json_pretty(&Ended {
        verdict: found.verdict(),
        limited_by,
        lossless_packets_per_s: lossless,
        lossy_packets_per_s: lossy,
        trials: found.trials.iter().map(Judged::of).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::prove::{Finding, Recorder, Sent};

    fn trial() -> Trial {
        let account = Account {
            offered: 2000,
            stored: 1990,
            kernel_drops: 7,
            unexplained: 2,
            altered: 1,
            strangers: 1,
            ..Account::default()
        };
        let sent = Sent { packets: 2000, bytes: 2_000_000, elapsed_ns: 16_000_000 };
        let recorder = Recorder {
            stored: 1992,
            cpu: Duration::from_millis(4),
            write_latency_ns_max: 2_500_000,
            pool_columns: 128,
            pool_columns_used_max: 3,
            ring_freezes: Some(1),
            ..Recorder::default()
        };
        Trial {
            ask: Ask::Bits(1_000_000_000),
            sent,
            account,
            read: 1992,
            recorder: recorder.offered(&sent),
            findings: vec![Finding::Lost(5..14)],
            notes: Vec::new(),
            is_stopped: false,
        }
    }

    #[test]
    fn a_run_tells_where_every_packet_went() {
        assert_eq!(
            proved(&trial()),
            "lost: 10 of 2 000 packets, 0.500 %\n\
             offered: 2 000 packets, 1.90 MiB in 16.0 ms: 125 000 packets/s, 1.00 Gbit/s of \
             frames; asked for 1.00 Gbit/s\n\
             account: 2 000 offered = 1 990 stored + 7 kernel drops + 1 altered + 2 unexplained\n\
             besides: 1 packet, not sent here\n\
             recorder: 4.0 ms of CPU time, 2.00 s/GB, 2.00 s/million packets; longest write \
             2.5 ms; pool: 3 of 128 columns used at most; the kernel's ring was full 1 time\n\
             found: packets 5 to 13 are missing\n"
        );
    }

    #[test]
    fn json_has_every_counter_and_the_verdict() {
        let json: serde_json::Value = serde_json::from_str(&proved_json(&trial())).unwrap();
        let count = |name: &str| json[name].as_u64().unwrap();
        let losses = ["altered", "interface_drops", "kernel_drops", "writer_drops", "unexplained"];
        let lost: u64 = losses.into_iter().map(count).sum();
        assert_eq!((count("offered"), count("stored")), (2000, 2000 - lost));
        assert_eq!(json["verdict"], "lost");
        assert_eq!(json["asked_bits_per_s"], 1_000_000_000);
        assert_eq!(json["recorder"]["pool_columns_used_max"], 3);
    }

    #[test]
    fn json_has_its_names_and_their_order() {
        let none = Sent::default();
        let asked = Trial {
            ask: Ask::Packets(7),
            sent: none,
            recorder: trial().recorder.offered(&none),
            notes: vec!["a note".to_owned()],
            is_stopped: true,
            ..trial()
        };
        let limit = Some(Limit::Recorder { lossless: 1, lossy: 2 });
        let found = Found { limit, trials: vec![trial(), asked] };
        assert_eq!(limit_json(&found), include_str!("prove_frozen.json"));
        let limit = Some(Limit::Nothing { lossy: 2 });
        let nothing = "{\n  \"verdict\": \"lost\",\n  \"limited_by\": \"recorder\",\n  \
            \"lossless_packets_per_s\": null,\n  \"lossy_packets_per_s\": 2,\n  \
            \"trials\": []\n}\n";
        assert_eq!(limit_json(&Found { limit, trials: Vec::new() }), nothing);
        let stopped = "{\n  \"verdict\": \"cannot judge\",\n  \"limited_by\": null,\n  \
            \"lossless_packets_per_s\": null,\n  \"lossy_packets_per_s\": null,\n  \
            \"trials\": []\n}\n";
        assert_eq!(limit_json(&Found::default()), stopped);
    }

    #[test]
    fn a_search_says_who_is_the_limit() {
        let found = |limit| Found { limit, trials: vec![trial()] };
        let sender = found(Some(Limit::Sender { lossless: 125_000 }));
        let text = limit(&sender);
        let first = "nothing is lost up to 125 000 packets/s (1.00 Gbit/s), which is all that";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("1.00 Gbit/s: 0.500 % lost (7 kernel drops"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&limit_json(&sender)).unwrap();
        assert_eq!((&json["limited_by"], &json["verdict"]), (&"sender".into(), &"lossless".into()));
    }
}
