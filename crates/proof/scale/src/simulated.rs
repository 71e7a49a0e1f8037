//! What is simulated for docs/scale.md: the settings, and the tables of what came of them.

use core::time::Duration;

use anyhow::Result;
use units::number::{floor, real, whole};

use crate::agenda::nanos;
use crate::archiving::merging::{self, HOUR_NS};
use crate::archiving::{self, calls};
use crate::fanout::{self, Mix};
use crate::inputs::Inputs;
use crate::plan::Sensor;
use crate::table::{Table, count, number, percent, time};

fn fanout_setting(inputs: &Inputs, sensors: usize, rows: u64) -> Result<fanout::Setting> {
    Ok(fanout::Setting {
        sensors,
        mix: Mix::usual(),
        rows,
        limits: fanout::Setting::limits(None),
        search_ns: nanos(inputs.get("search_s")?),
        slow_ns: nanos(3600.0),
        way_ns: nanos(inputs.get("way_s")?),
        row_bytes: whole(inputs.get("row_json_bytes")?),
        link_bytes: whole(inputs.get("asker_link_bytes_per_s")?),
        cores: floor(inputs.get("asker_cores")?),
        connect_ns: nanos(inputs.get("connect_s")?),
        read_ns: nanos(inputs.get("read_row_s")?),
        take_ns: nanos(inputs.get("take_row_s")?),
    })
}

/// A question to fleets of several sizes, up to so many sensors.
pub(crate) fn fanout(inputs: &Inputs, seed: u64, most: usize) -> Result<Table> {
    let heads = [
        "sensors",
        "rows each",
        "limits",
        "first row",
        "whole",
        "rows",
        "behind later ones",
        "asked",
        "cores, link, merge busy",
        "named",
    ];
    let mut table = Table::new("A question to the whole fleet", &heads);
    let sizes = [(50, 1000), (1000, 100), (10_000, 100), (50_000, 20)];
    for (sensors, rows) in sizes.into_iter().filter(|(sensors, _)| *sensors <= most) {
        for patience in [None, Some(200)] {
            let mut setting = fanout_setting(inputs, sensors, rows)?;
            let mut limits = "none".to_owned();
            if let Some(patience) = patience {
                setting.limits.patience = Some(Duration::from_millis(patience));
                setting.limits.deadline = Some(Duration::from_secs(10));
                limits = format!("patience {patience} ms, deadline 10 s");
            }
            let answer = fanout::ask(&setting, seed);
            let named: Vec<String> =
                answer.named().iter().map(|(word, count)| format!("{count} {word}")).collect();
            let shares = [answer.cores, answer.link, answer.merge].map(percent);
            table.push([
                sensors.to_string(),
                rows.to_string(),
                limits,
                answer.first_s.map_or_else(|| "none".to_owned(), time),
                time(answer.whole_s),
                count(real(answer.rows)),
                count(real(answer.late)),
                count(real(answer.attempts)),
                shares.join(", "),
                named.join(", "),
            ]);
        }
    }
    Ok(table)
}

fn archive_setting(inputs: &Inputs, sensors: usize, gbit: f64) -> Result<archiving::Setting> {
    let sensor = Sensor::at(inputs, gbit)?;
    let part_bytes = sensor.part_rows * inputs.get("archive_bytes_per_session")?;
    let ring_s = inputs.get("ring_s")?;
    let encode_s = sensor.part_rows * inputs.get("archive_ns_per_session")? / 1e9;
    Ok(archiving::Setting {
        sensors,
        part_ns: nanos(sensor.part_s),
        part_bytes,
        encode_ns: nanos(encode_s),
        ring_parts: whole(ring_s / sensor.part_s),
        rate: None,
        script: calls::of_part()?,
        channels: 1,
        call_ns: nanos(inputs.get("store_call_s")?),
        channel_bytes: inputs.get("store_channel_bytes_per_s")?,
        busy_ns: nanos(inputs.get("store_busy_s")?),
        away: (HOUR_NS / 2, 3 * HOUR_NS / 2),
        end_ns: 4 * HOUR_NS,
    })
}

/// So many sensors' archives in stores of several sizes, away for an hour.
pub(crate) fn archive(inputs: &Inputs, seed: u64, sensors: usize) -> Result<Table> {
    let heads = [
        "sensors, Gbit/s each",
        "store: calls at a time",
        "busy in the mean, expected",
        "calls a second, expected",
        "calls in 4 h",
        "of those failed",
        "parts behind, at most",
        "caught up after",
        "longest wait at the store",
        "parts overwritten",
        "left waiting",
    ];
    let mut table = Table::new("An hour without the store", &heads);
    for (share, rate) in [(0.8, None), (0.5, None), (0.2, None), (0.5, Some(2.0))] {
        let gbit = inputs.get("simulated_gbit")?;
        let mut setting = archive_setting(inputs, sensors, gbit)?;
        // As many channels as leave it busy for this share.
        setting.channels = floor((archiving::expected_share(&setting) / share).ceil());
        let factor = rate.map(|factor| factor * setting.part_bytes / 60.0);
        setting.rate = factor.map(whole);
        let outcome = archiving::play(&setting, seed);
        let limited = setting
            .rate
            .map_or_else(String::new, |rate| format!(", each sensor {}B/s", number(real(rate))));
        table.push([
            format!("{sensors} x {gbit}{limited}"),
            setting.channels.to_string(),
            percent(archiving::expected_share(&setting)),
            number(archiving::calls_per_second(&setting)),
            count(real(outcome.calls)),
            count(real(outcome.failed)),
            outcome.behind_max.to_string(),
            outcome.caught_up_s.map_or_else(|| "not within 150 min".to_owned(), time),
            time(outcome.longest_s),
            count(real(outcome.overwritten)),
            count(real(outcome.waiting)),
        ]);
    }
    Ok(table)
}

/// Writers that merge and die.
pub(crate) fn merging(inputs: &Inputs, seed: u64, sensors: usize) -> Result<Table> {
    let heads = [
        "sensors",
        "writers",
        "busy, expected",
        "a writer lives",
        "deaths",
        "hours merged",
        "of ripe",
        "objects",
        "left",
        "behind, mean",
        "most",
        "kept away by claims",
    ];
    let mut table = Table::new("Merging by writers that die", &heads);
    let sensor = Sensor::at(inputs, inputs.get("simulated_gbit")?)?;
    for (spare, life_s) in [(1.5, 1e9), (1.5, 86_400.0), (1.5, 1800.0), (0.9, 1e9)] {
        let mut setting = merging::Setting {
            sensors,
            hours: 6,
            objects: whole(3600.0 / sensor.part_s).max(1),
            object_bytes: whole(sensor.part_rows * inputs.get("archive_bytes_per_session")?),
            object_rows: whole(sensor.part_rows),
            look_ns: nanos(inputs.get("store_call_s")? * 3600.0 / sensor.part_s),
            row_ns: inputs.get("merge_ns_per_session")?,
            writers: 1,
            life_ns: nanos(life_s),
            restart_ns: nanos(10.0),
            end_ns: 8 * HOUR_NS,
        };
        setting.writers = floor((merging::expected_share(&setting) * spare).ceil()).max(1);
        let outcome = merging::play(&setting, seed);
        table.push([
            sensors.to_string(),
            setting.writers.to_string(),
            percent(merging::expected_share(&setting)),
            if life_s > 1e8 { "for ever".to_owned() } else { time(life_s) },
            count(real(outcome.deaths)),
            count(real(outcome.merged)),
            count(real(outcome.ripe)),
            count(real(outcome.objects)),
            count(real(outcome.left)),
            time(outcome.delay_s),
            time(outcome.delay_max_s),
            count(real(outcome.barred)),
        ]);
    }
    Ok(table)
}
