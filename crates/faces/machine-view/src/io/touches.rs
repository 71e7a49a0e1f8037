//! Who touched which file: a line for each time, a table at the end, and as JSON lines.

use std::collections::BTreeMap;

use diagnose::io::{Touch, TouchKind, Touches};
use page::safe::{json_line, printable};
use page::text::{grouped, plural, time};
use serde::Serialize;
use units::Timestamp;

use super::{Table, number, words};

/// `10:40:22.123  cat (process 77)  open read  /data/file`.
pub fn touch(touch: &Touch, at: Timestamp) -> String {
    let Touch { process, name, path, .. } = touch;
    let time = time(at);
    let clock = time.get(11..).unwrap_or(&time);
    format!(
        "{clock}  {} (process {process})  {}  {}\n",
        printable(name),
        kinds(touch),
        printable(&path.to_string_lossy())
    )
}

fn kinds(touch: &Touch) -> String {
    touch.kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" ")
}

/// A touch, and when it was.
#[derive(Serialize)]
struct Timed<'a> {
    time_ns: i64,
    #[serde(flatten)]
    touch: &'a Touch,
}

/// One object in a line.
pub fn touch_json(touch: &Touch, at: Timestamp) -> String {
    json_line(&Timed { time_ns: at.0, touch })
}

/// Files with those who touched them, the most often touched first.
pub fn touches(all: &Touches, width: Option<usize>) -> String {
    let columns = [
        words("FILE", 24),
        words("NAME", 12),
        number("PROCESS", 2),
        number("OPEN", 3),
        number("READ", 0),
        number("WRITE", 0),
        number("CLOSE", 4),
        number("OTHER", 1),
    ];
    let mut rows: Vec<_> = all.counts.iter().collect();
    let sum = |kinds: &BTreeMap<TouchKind, u64>| kinds.values().sum::<u64>();
    rows.sort_by_key(|(_, kinds)| core::cmp::Reverse(sum(kinds)));
    let rows = rows.into_iter().map(|(who, kinds)| {
        let count = |kind: TouchKind| kinds.get(&kind).copied().unwrap_or(0);
        let known = [TouchKind::Opened, TouchKind::Read, TouchKind::Written, TouchKind::Closed];
        let [opened, read, written, closed] = known.map(count);
        let other = sum(kinds) - opened - read - written - closed;
        let path = printable(&who.path.to_string_lossy());
        let [opened, read, written, closed, other] =
            [opened, read, written, closed, other].map(grouped);
        let (name, process) = (printable(&who.name), who.process.to_string());
        [path, name, process, opened, read, written, closed, other]
    });
    let text = match Table::new("Touched files", columns, rows).text(width) {
        text if text.is_empty() => "nothing was touched\n".to_owned(),
        text => text,
    };
    let uncounted = (all.uncounted > 0)
        .then(|| format!("{} touches of further files were not kept\n", all.uncounted));
    let overflows = (all.overflows > 0).then(|| {
        let times = plural(all.overflows, "time");
        format!("the kernel's queue was full {times}: touches of those moments are missing\n")
    });
    [Some(text), uncounted, overflows].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_touch_is_a_line_that_cannot_steer_a_terminal() {
        let one = Touch {
            process: 77,
            name: "cat".to_owned(),
            kinds: vec![TouchKind::Opened, TouchKind::Read],
            path: PathBuf::from("/data/\u{1b}[2Jx"),
        };
        let at = Timestamp(1_500_000_000);
        assert_eq!(
            touch(&one, at),
            "00:00:01.500  cat (process 77)  open read  /data/\\u{1b}[2Jx\n"
        );
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/data/\x1bx\xff"));
        let json = touch_json(&Touch { kinds: TouchKind::ALL.to_vec(), path, ..one }, at);
        assert_eq!(
            json,
            "{\"time_ns\":1500000000,\"process\":77,\"name\":\"cat\",\"kinds\":[\"open\",\"read\",\
             \"write\",\"close\",\"attributes\",\"create\",\"remove\",\"move\"],\
             \"path\":\"/data/\\u001bx\\ufffd\"}\n"
        );
    }

    #[test]
    fn files_that_are_touched_most_come_first() {
        let mut all = Touches::default();
        let one = |path: &str, kind| Touch {
            process: 7,
            name: "cat".to_owned(),
            kinds: vec![kind],
            path: PathBuf::from(path),
        };
        all.take(&one("/a", TouchKind::Read));
        (0..9).for_each(|_| all.take(&one("/b", TouchKind::Moved)));
        let text = touches(&all, None);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("/b") && lines[2].ends_with('9'), "{text}");
        assert!(lines[3].starts_with("/a"), "{text}");
        assert_eq!(touches(&Touches::default(), None), "nothing was touched\n");
        all.overflows = 2;
        assert!(touches(&all, None).contains("full 2 times"));
    }
}
