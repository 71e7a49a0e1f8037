//! What it comes to, in words and in a table.

use ::qualify::{Answer, Asked, Judged, Lost, Order, Qualification, Share, Verdict};
use page::safe::printable;
use page::text::disk_rate as rate;
use page::text::{bits, nanos, plural};
use page::{Cell, Document};
use units::ByteSize;

use crate::text::{doubt, jump, margin};

pub(super) fn add(page: &mut Document, found: &Qualification) {
    let Some(verdict) = &found.verdict else {
        page.verdict("", "No part that was run says what rate it guarantees.", &[]);
        return;
    };
    let Some(first) = verdict.judged.first() else { return };
    let (tone, words) = words(found, verdict);
    page.verdict(tone, &words, &sentences(found, verdict, first));
    let mut facts = vec![
        ("guaranteed", rate(first.guaranteed_bytes_per_s)),
        ("mean", rate(first.mean_bytes_per_s)),
        ("slowest stretch", rate(first.minimum_bytes_per_s)),
        ("traffic guaranteed", bits(verdict.guaranteed_traffic_bit_per_s)),
    ];
    if let Some(asked) = &verdict.asked {
        facts.push(("needed", rate(asked.needed_bytes_per_s)));
    }
    page.facts(&facts);
    runs(page, verdict);
    shares(page, verdict);
    lost(page, verdict);
}

fn shares(page: &mut Document, verdict: &Verdict) {
    if verdict.shares.is_empty() {
        return;
    }
    let row = |share: &Share| {
        let guaranteed = share.guaranteed_bytes_per_s;
        vec![
            Cell::number(format!("{} %", share.percent)),
            Cell::number(ByteSize(share.size_bytes).to_string()),
            Cell::text(if share.is_computed { "computed" } else { "measured" }),
            Cell::number(rate(guaranteed)),
            Cell::number(bits(verdict.mix.bits_of(guaranteed))),
            Cell::number(rate(share.mean_bytes_per_s)),
            Cell::number(rate(share.minimum_bytes_per_s)),
        ]
    };
    let rows: Vec<Vec<Cell>> = verdict.shares.iter().map(row).collect();
    let headings =
        ["surface used", "size", "how", "guaranteed", "as traffic", "mean", "slowest place"];
    page.table("With the slow end of the surface left out", &headings, &rows);
}

fn lost(page: &mut Document, verdict: &Verdict) {
    if verdict.lost.is_empty() {
        return;
    }
    let row = |lost: &Lost| {
        let known = |text: Option<String>| Cell::number(text.unwrap_or_else(|| "-".to_owned()));
        let guaranteed = lost.guaranteed_bytes_per_s;
        vec![
            Cell::text(plural(u64::from(lost.members), "member")),
            known(guaranteed.map(rate)),
            known(guaranteed.map(|guaranteed| bits(verdict.mix.bits_of(guaranteed)))),
            known(lost.rebuild_ns.map(nanos)),
            Cell::text(if guaranteed.is_some() { "" } else { "what it holds is lost" }),
        ]
    };
    let rows: Vec<Vec<Cell>> = verdict.lost.iter().map(row).collect();
    let headings = ["lost", "guaranteed", "as traffic", "rebuilt in", ""];
    page.table("While members are lost and replaced", &headings, &rows);
}

/// The answer to what was asked.
fn words(found: &Qualification, verdict: &Verdict) -> (&'static str, String) {
    let traffic = bits(verdict.guaranteed_traffic_bit_per_s);
    if found.wrong_rows() > 0 {
        return ("bad", "Rows read back were not those written: it loses data.".to_owned());
    }
    let is_no_answer = |asked: &Asked| asked.answer == Answer::CannotJudge;
    if !verdict.doubts.is_empty() && verdict.asked.as_ref().is_none_or(is_no_answer) {
        return ("open", "What was measured guarantees nothing.".to_owned());
    }
    let Some(asked) = &verdict.asked else {
        let by_reading = verdict.judged.first().is_some_and(|judged| judged.is_by_reading);
        let condition = if by_reading { ", if it writes as it reads" } else { "" };
        return ("", format!("It guarantees {traffic} of traffic{condition}."));
    };
    let asked_for = bits(asked.bits_per_s);
    match asked.answer {
        Answer::Fits => ("good", format!("It carries {asked_for} of this traffic.")),
        Answer::TooSlow => ("bad", format!("It is too slow for {asked_for} of this traffic.")),
        Answer::CannotJudge => {
            ("open", format!("What was measured does not say whether it carries {asked_for}."))
        }
    }
}

fn sentences(found: &Qualification, verdict: &Verdict, first: &Judged) -> Vec<String> {
    let mix = &verdict.mix;
    let guaranteed = rate(first.guaranteed_bytes_per_s);
    let is = if verdict.doubts.is_empty() { "guaranteed" } else { "measured" };
    let mut sentences = vec![format!(
        "{guaranteed} are {is} with a pool of {}, which is {} of traffic on a link: {}, mean \
         frame {} bytes.",
        ByteSize(first.pool_bytes),
        bits(verdict.guaranteed_traffic_bit_per_s),
        printable(&mix.name),
        mix.mean_frame_bytes()
    )];
    if let Some(asked) = &verdict.asked {
        let (needed, margin) = (rate(asked.needed_bytes_per_s), margin(asked.margin_permille));
        sentences.push(format!("{} need {needed}: {margin}.", bits(asked.bits_per_s)));
    }
    sentences.extend(verdict.doubts.iter().map(|it| format!("{}.", capital(&doubt(it)))));
    if first.is_by_reading {
        sentences.push("It was only read, and reading proves no writing.".to_owned());
    }
    if found.is_interrupted {
        sentences.push("The run was stopped before its end.".to_owned());
    }
    if first.pool_bytes < verdict.pool_bytes {
        let asked = ByteSize(verdict.pool_bytes);
        sentences.push(format!("So short a run does not prove more of the pool of {asked}."));
    }
    sentences
}

/// As a sentence begins.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn runs(page: &mut Document, verdict: &Verdict) {
    let has_dips = verdict.judged.iter().any(|judged| judged.slow_ns.is_some());
    let row = |judged: &Judged| {
        let known = |ns: Option<u64>| match ns {
            None => String::new(),
            Some(0) => "never".to_owned(),
            Some(ns) => nanos(ns),
        };
        let how = match (judged.is_computed, judged.is_by_reading) {
            (false, false) => "measured",
            (false, true) => "read",
            (true, false) => "computed",
            (true, true) => "computed, by reading",
        };
        let order = match judged.order {
            Order::FirstToLast => "first to last",
            Order::ZoneLevelled => "zones levelled",
        };
        let mut cells = vec![
            Cell::text(order),
            Cell::text(judged.basis.name()),
            Cell::text(how),
            Cell::number(rate(judged.guaranteed_bytes_per_s)),
            Cell::number(bits(verdict.mix.bits_of(judged.guaranteed_bytes_per_s))),
            Cell::number(rate(judged.mean_bytes_per_s)),
            Cell::number(rate(judged.minimum_bytes_per_s)),
            Cell::number(ByteSize(judged.pool_bytes).to_string()),
        ];
        if has_dips {
            cells.extend([judged.slow_ns, judged.fast_ns].map(|ns| Cell::number(known(ns))));
        }
        cells
    };
    let rows: Vec<Vec<Cell>> = verdict.judged.iter().map(row).collect();
    let mut headings =
        vec!["order", "part", "how", "guaranteed", "as traffic", "mean", "slowest", "pool"];
    if has_dips {
        headings.extend(["too slow for", "fast enough for"]);
    }
    page.table(
        "By the order of writing; the verdict stands on the first. Computed: from rates at places",
        &headings,
        &rows,
    );
    if let Some(jump) = verdict.judged.iter().find_map(|judged| judged.jump) {
        page.remark(&format!("Zones levelled, computed: {}.", self::jump(jump)));
    }
}
