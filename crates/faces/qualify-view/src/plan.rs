//! How many of which disks: a table and JSON.

use ::qualify::{Disk, Need, Proposal};
use page::add;
use page::safe::{json_pretty, printable};
use page::table::{self, Column};
use page::text::disk_rate as rate;
use page::text::{bits, nanos, plural, wrapped};
use serde::Serialize;
use units::ByteSize;

/// Columns where there is no terminal.
const WIDTH: usize = 100;

/// What each kind of disk comes to; `width` is that of the terminal, if there is one.
pub fn qualify_plan(
    need: &Need,
    disks: &[Disk],
    proposals: &[Proposal],
    width: Option<usize>,
) -> String {
    let wide = width.unwrap_or(WIDTH);
    let mut text = String::new();
    for line in asked(need).iter().flat_map(|line| wrapped(line, wide, 2)) {
        add(&mut text, format_args!("{line}\n"));
    }
    let column = |title, is_number, rank| Column { title, is_number, least: 0, rank };
    let columns = [
        column("disk", false, 0),
        column("disks", true, 0),
        column("usable", true, 3),
        column("days", true, 0),
        column("traffic", true, 0),
        column("1 lost", true, 2),
        column("2 lost", true, 4),
        column("margin", true, 1),
        column("rebuilt in", true, 5),
        column("", false, 0),
    ];
    let rows: Vec<Vec<String>> = proposals.iter().map(|proposal| row(disks, proposal)).collect();
    text.push_str(&table::render(&columns, &rows, width));
    let short = proposals.iter().filter(|proposal| !proposal.fits);
    let short = short.map(|proposal| missing(need, proposal));
    let sources = disks.iter().map(|disk| printable(&format!("{}: {}", disk.name, disk.source)));
    for line in short.chain(sources).flat_map(|line| wrapped(&line, wide, 2)) {
        add(&mut text, format_args!("{line}\n"));
    }
    if !proposals.iter().any(|proposal| proposal.fits) {
        text.push_str("nothing of this fits\n");
    }
    text
}

fn asked(need: &Need) -> Vec<String> {
    let (mix, frame) = (printable(&need.mix.name), need.mix.mean_frame_bytes());
    let mut lines = vec![format!(
        "{} of {mix}, mean frame {frame} bytes, need {} of disks, with a pool of {}",
        bits(need.bits_per_s),
        rate(need.mix.bytes_of(need.bits_per_s)),
        ByteSize(need.pool_bytes),
    )];
    if need.days > 0 {
        let kept = u128::from(need.mix.bytes_of(need.mean_bits_per_s)) * 86_400;
        let kept = u64::try_from(kept * u128::from(need.days)).unwrap_or(u64::MAX);
        lines.push(format!(
            "{} at a mean of {} are {}",
            plural(need.days, "day"),
            bits(need.mean_bits_per_s),
            terabytes(kept),
        ));
    }
    lines
}

/// What disks that do not fit come to, and how many of them would do.
fn missing(need: &Need, proposal: &Proposal) -> String {
    let name = &proposal.name;
    let (all, lost) = (proposal.traffic_bit_per_s, proposal.traffic_bit_per_s_lost);
    let lost = lost.into_iter().flatten().min();
    let mut facts = Vec::new();
    if !proposal.is_fast_enough {
        let (carried, asked) = (bits(lost.unwrap_or(all).min(all)), bits(need.bits_per_s));
        let while_lost = if lost.is_some() { ", also while a disk is replaced" } else { "" };
        facts.push(format!("carries {carried} of {asked}{while_lost}"));
    }
    if need.days > 0 || !proposal.is_large_enough {
        let asked = if need.days > 0 { format!(" of {}", need.days) } else { String::new() };
        facts.push(format!("keeps {}{asked} days", days(proposal.held_ns)));
    }
    let would = match proposal.enough {
        Some(enough) if enough.volumes > 1 => format!(
            "{} would do: {} volumes of {} that share the traffic",
            plural(u64::from(enough.disks), "disk"),
            enough.volumes,
            side_by_side(enough.data, enough.parity),
        ),
        Some(enough) if enough.parity == 0 => {
            format!("{} would do", plural(u64::from(enough.disks), "disk"))
        }
        Some(enough) => format!(
            "{} would do ({})",
            plural(u64::from(enough.disks), "disk"),
            side_by_side(enough.data, enough.parity)
        ),
        None => "no number of such disks does".to_owned(),
    };
    let these = side_by_side(proposal.data, proposal.parity);
    printable(&format!("{name}, {these}: {}; {would}", facts.join(" and ")))
}

/// Disks of data and of parity: `7+2`.
fn side_by_side(data: u32, parity: u8) -> String {
    if parity > 0 { format!("{data}+{parity}") } else { data.to_string() }
}

fn row(disks: &[Disk], proposal: &Proposal) -> Vec<String> {
    let Proposal { data, parity, .. } = *proposal;
    let disk = disks.get(proposal.disk);
    let [one, two] = proposal.traffic_bit_per_s_lost.map(|lost| lost.map_or_else(dash, bits));
    let by_reading = disk.is_some_and(|disk| disk.is_by_reading);
    let answer = match (proposal.is_fast_enough, proposal.is_large_enough) {
        (true, true) if by_reading => "fits, if it writes as it reads",
        (true, true) => "fits",
        (false, true) => "TOO SLOW",
        (true, false) => "TOO SMALL",
        (false, false) => "TOO SLOW, TOO SMALL",
    };
    vec![
        printable(&proposal.name),
        side_by_side(data, parity),
        terabytes(proposal.usable_bytes),
        days(proposal.held_ns),
        bits(proposal.traffic_bit_per_s),
        one,
        two,
        margin(proposal.margin_permille),
        proposal.rebuild_ns.map_or_else(dash, nanos),
        answer.to_owned(),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

/// As disks are sold.
fn terabytes(bytes: u64) -> String {
    let tenths = bytes / 100_000_000_000;
    format!("{}.{} TB", tenths / 10, tenths % 10)
}

fn days(ns: u64) -> String {
    let tenths = ns / 8_640_000_000_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Of what is needed; from ten times on as the number of times.
fn margin(permille: i64) -> String {
    if permille >= 9000 {
        return format!("{} times", (permille + 1000) / 1000);
    }
    let sign = if permille < 0 { '-' } else { '+' };
    let size = permille.unsigned_abs();
    format!("{sign}{}.{} %", size / 10, size % 10)
}

/// What is asked for, with what follows of it, and what disks come to.
#[derive(Serialize)]
struct Plan<'a> {
    bits_per_s: u64,
    mean_bits_per_s: u64,
    needed_bytes_per_s: u64,
    days: u64,
    mix: &'a str,
    mean_frame_bytes: u64,
    pool_bytes: u64,
    disks: &'a [Disk],
    proposals: &'a [Proposal],
}

/// The same as JSON.
pub fn qualify_plan_json(need: &Need, disks: &[Disk], proposals: &[Proposal]) -> String {
    json_pretty(&Plan {
        bits_per_s: need.bits_per_s,
        mean_bits_per_s: need.mean_bits_per_s,
        needed_bytes_per_s: need.mix.bytes_of(need.bits_per_s),
        days: need.days,
        mix: &need.mix.name,
        mean_frame_bytes: need.mix.mean_frame_bytes(),
        pool_bytes: need.pool_bytes,
        disks,
        proposals,
    })
}
