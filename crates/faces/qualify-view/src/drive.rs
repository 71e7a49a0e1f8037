//! What a drive reports of itself, and what was measured.

use ::qualify::{Drive, Health, Link, Recording, Seen, Target};
use page::safe::printable;
use page::text::{duration, grouped};
use units::ByteSize;

/// Lines about a drive, each with what goes together.
pub(super) fn lines(drive: &Drive) -> Vec<String> {
    let mut lines = Vec::new();
    let mut facts = Vec::new();
    facts.extend(drive.turns_per_min.map(|turns| match turns {
        0 => "no platters".to_owned(),
        turns => format!("{turns} turns a minute"),
    }));
    facts.extend(drive.recording.map(recording).map(str::to_owned));
    facts.extend(drive.temperature_c.map(|degrees| format!("{degrees} degrees Celsius")));
    facts.extend(drive.link.as_ref().map(link));
    if !facts.is_empty() {
        lines.push(format!("  {}", facts.join(", ")));
    }
    lines.extend(drive.health.as_ref().map(|health| format!("  {}", self::health(health))));
    lines.extend(
        drive.unread.iter().map(|it| format!("  not read: {}", printable(&it.to_string()))),
    );
    lines
}

fn recording(recording: Recording) -> &'static str {
    match recording {
        Recording::DriveManaged => "SHINGLED and hides it: it will stall under a recorder",
        Recording::HostAware => "shingled, takes random writes",
        Recording::HostManaged => "shingled, refuses writes out of order",
        Recording::NotTold => "does not say that it is shingled",
    }
}

fn link(link: &Link) -> String {
    let Link { speed, speed_most, width, width_most } = link;
    let (speed, speed_most) = (printable(speed), printable(speed_most));
    if link.is_narrowed() {
        format!("PCI x{width} at {speed}, and it could x{width_most} at {speed_most}")
    } else {
        format!("PCI x{width} at {speed}, as it can")
    }
}

fn health(health: &Health) -> String {
    let verdict = if health.is_failing { "SMART: IT FAILS" } else { "SMART: well" };
    let count = |name: &str, value: Option<u64>| value.map(|it| format!("{} {name}", grouped(it)));
    let facts = [
        health.used_percent.map(|used| format!("{used} % of its life used")),
        count("rows lost", health.media_errors),
        count("reallocated", health.reallocated),
        count("pending", health.pending),
        count("hours on", health.power_on_hours),
        health.written_bytes.map(|bytes| format!("{} written in its life", ByteSize(bytes))),
        count("power losses", health.unsafe_shutdowns),
    ];
    let facts = facts.into_iter().flatten().map(|fact| format!(", {fact}"));
    format!("{verdict}{}", facts.collect::<String>())
}

/// What was measured beside what is claimed; `None` where nothing could be measured.
pub(super) fn seen(target: &Target, seen: Seen) -> Option<String> {
    let mut said = Vec::new();
    let claims = target.layers.first().map(|layer| layer.is_rotational);
    let access = seen.access_ns.map(|ns| duration(i64::try_from(ns).unwrap_or(i64::MAX)));
    let access = access.unwrap_or_default();
    said.extend(seen.turns.map(|turns| match (turns, claims) {
        (true, Some(false)) => {
            format!("IT TURNS, and says that it does not: an access takes {access}")
        }
        (false, Some(true)) => {
            format!("it says that it turns, and an access takes {access}: flash, or a cache")
        }
        (true, _) => format!("it turns: an access takes {access}"),
        (false, _) => format!("it does not turn: an access takes {access}"),
    }));
    let cache = target.layers.first().and_then(|layer| layer.write_cache.as_deref());
    said.extend(seen.has_cache.map(|has_cache| match (has_cache, cache) {
        (true, Some("write through")) => {
            "A CACHE FILLS, and it says that it has none that keeps writes".to_owned()
        }
        (true, _) => "a cache fills, and then it is slower".to_owned(),
        (false, Some("write back")) => {
            "no cache shows at this length, and it says that one keeps writes".to_owned()
        }
        (false, _) => "no cache shows at this length".to_owned(),
    }));
    if seen.is_shingled == Some(true) {
        said.push("WRITING OVER crawls, as on shingled tracks that a drive hides".to_owned());
    }
    (!said.is_empty()).then(|| said.join("; "))
}

#[cfg(test)]
mod tests {
    use ::qualify::{Layer, TargetKind, Unread};

    use super::*;

    #[test]
    fn a_drive_is_told_in_two_lines_and_what_it_kept_to_itself() {
        let drive = Drive {
            temperature_c: Some(38),
            health: Some(Health {
                used_percent: Some(3),
                power_on_hours: Some(8760),
                written_bytes: Some(5 << 40),
                ..Health::default()
            }),
            link: Some(Link {
                speed: "8.0 GT/s PCIe".to_owned(),
                speed_most: "16.0 GT/s PCIe".to_owned(),
                width: 2,
                width_most: 4,
            }),
            turns_per_min: Some(0),
            recording: None,
            unread: vec![Unread { what: "SMART".to_owned(), needs: "needs root".to_owned() }],
        };
        assert_eq!(
            lines(&drive),
            [
                "  no platters, 38 degrees Celsius, PCI x2 at 8.0 GT/s PCIe, and it could x4 at \
                 16.0 GT/s PCIe",
                "  SMART: well, 3 % of its life used, 8 760 hours on, 5.00 TiB written in its life",
                "  not read: SMART: needs root",
            ]
        );
    }

    #[test]
    fn what_was_seen_stands_beside_what_is_claimed() {
        let layer = Layer {
            is_rotational: true,
            write_cache: Some("write back".to_owned()),
            ..Layer::default()
        };
        let kind = TargetKind::Device;
        let target = Target {
            kind,
            path: "/dev/x".to_owned(),
            size_bytes: 1,
            layers: vec![layer],
            is_in_memory: false,
            limits: Vec::new(),
        };
        let flash = Seen { turns: Some(false), access_ns: Some(90_000), ..Seen::default() };
        let text = "it says that it turns, and an access takes 90.0 us: flash, or a cache";
        assert_eq!(seen(&target, flash).unwrap(), text);
        let cache = Seen { has_cache: Some(true), is_shingled: Some(true), ..Seen::default() };
        assert!(seen(&target, cache).unwrap().contains("WRITING OVER crawls"));
        assert_eq!(seen(&target, Seen::default()), None);
    }
}
