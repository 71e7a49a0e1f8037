//! Recorders that run, by what they say of themselves.

use recording::{Progress, State, parse_recorder};
use units::number::{per_second, permille, to_u64};

use super::{Cell, Sheet, SheetColumn, SheetLine};

/// Column by which recorders are recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecorderGrouping {
    /// Each recorder.
    Recorder,
    /// Each of its interfaces.
    Interface,
    /// Each of its disks.
    Disk,
}

/// A recorder with how it stood a moment before, if it ran then.
struct Pair {
    now: Progress,
    process: u32,
    before: Option<Progress>,
}

impl Pair {
    /// What was added a second since then, or since it began.
    fn per_second(&self, now: u64, of: impl Fn(&Progress) -> Option<u64>) -> u64 {
        let before = self.before.as_ref().and_then(of).unwrap_or(0);
        let before_ns = self.before.as_ref().map_or(0, |before| before.elapsed_ns);
        let ns = u64::try_from(self.now.elapsed_ns.saturating_sub(before_ns)).unwrap_or(0);
        per_second(now.saturating_sub(before), ns)
    }
}

/// Lines of recorders, from their states now and a moment before, each by the id of its volume.
pub fn recorders_sheet(
    now: &[(String, String)],
    before: &[(String, String)],
    grouping: RecorderGrouping,
) -> Sheet {
    let read = |text: &String| parse_recorder(text).ok();
    let pairs = now.iter().filter_map(|(id, state)| {
        let before = before.iter().find(|(other, _)| other == id);
        let before = before.and_then(|(_, state)| Some(read(state)?.now));
        let State { process, now, .. } = read(state)?;
        Some((id, Pair { now, process: process?, before }))
    });
    let pairs: Vec<(&String, Pair)> = pairs.collect();
    let mut sheet = match grouping {
        RecorderGrouping::Recorder => recorders(&pairs),
        RecorderGrouping::Interface => interfaces(&pairs),
        RecorderGrouping::Disk => disks(&pairs),
    };
    if pairs.is_empty() {
        sheet.notes.push("no recorder runs here that answers this user".to_owned());
    }
    sheet
}

fn lines(rows: impl Iterator<Item = Vec<Cell>>) -> Vec<SheetLine> {
    rows.map(|cells| SheetLine { cells, query: None }).collect()
}

fn recorders(pairs: &[(&String, Pair)]) -> Sheet {
    let columns = vec![
        SheetColumn::words("volume", "VOLUME", 8, 0),
        SheetColumn::number("process", "PROCESS", 3),
        SheetColumn::number("elapsed_ns", "SINCE", 4),
        SheetColumn::number("packets_per_s", "PACKETS", 0),
        SheetColumn::number("stored", "STORED", 2),
        SheetColumn::number("cut", "LEFT OUT", 6),
        SheetColumn::number("kernel_drops", "KERNEL DROPS", 0),
        SheetColumn::number("writer_drops", "WRITER DROPS", 0),
        SheetColumn::number("unindexed", "NOT INDEXED", 5),
        SheetColumn::number("pool_used_permille", "POOL", 1),
        SheetColumn::number("written_bytes_per_s", "WRITTEN", 1),
    ];
    let line = |(id, pair): &(&String, Pair)| {
        let Pair { now, process, .. } = pair;
        let used = now.pool_columns.saturating_sub(now.pool_columns_free);
        let packets = pair.per_second(now.total.offered, |it| Some(it.total.offered));
        vec![
            Cell::Text((*id).clone()),
            Cell::Id((*process).into()),
            Cell::Nanos(u64::try_from(now.elapsed_ns).unwrap_or(0)),
            Cell::PerSecond(packets),
            Cell::Count(now.total.stored),
            Cell::Count(now.total.cut),
            Cell::Count(now.total.kernel_drops),
            Cell::Count(now.total.writer_drops),
            Cell::Count(now.unindexed),
            Cell::Permille(permille(to_u64(used), to_u64(now.pool_columns))),
            Cell::BytesPerSecond(pair.per_second(now.member_bytes, |it| Some(it.member_bytes))),
        ]
    };
    Sheet { columns, lines: lines(pairs.iter().map(line)), ..Sheet::default() }
}

fn interfaces(pairs: &[(&String, Pair)]) -> Sheet {
    let columns = vec![
        SheetColumn::words("interface", "INTERFACE", 8, 0),
        SheetColumn::number("process", "PROCESS", 3),
        SheetColumn::number("packets_per_s", "PACKETS", 0),
        SheetColumn::number("stored", "STORED", 2),
        SheetColumn::number("kernel_drops", "KERNEL DROPS", 0),
        SheetColumn::number("writer_drops", "WRITER DROPS", 0),
        SheetColumn::number("interface_drops", "CARD DROPS", 1),
    ];
    let rows = pairs.iter().flat_map(|(_, pair)| {
        pair.now.interfaces.iter().map(move |account| {
            let offered = |it: &Progress| {
                Some(it.interfaces.iter().find(|other| other.name == account.name)?.offered)
            };
            vec![
                Cell::Text(account.name.clone()),
                Cell::Id(pair.process.into()),
                Cell::PerSecond(pair.per_second(account.offered, offered)),
                Cell::Count(account.stored),
                Cell::Count(account.kernel_drops),
                Cell::Count(account.writer_drops),
                account.interface_drops.map_or(Cell::Absent, Cell::Count),
            ]
        })
    });
    Sheet { columns, lines: lines(rows), ..Sheet::default() }
}

fn disks(pairs: &[(&String, Pair)]) -> Sheet {
    let columns = vec![
        SheetColumn::words("disk", "DISK", 12, 0),
        SheetColumn::number("process", "PROCESS", 4),
        SheetColumn::number("writes_per_s", "WRITES", 2),
        SheetColumn::number("slow_writes", "SLOW", 0),
        SheetColumn::number("latency_p50_ns", "50%", 1),
        SheetColumn::number("latency_max_ns", "LONGEST", 0),
        SheetColumn::words("qualified", "AS QUALIFIED", 0, 3),
    ];
    let rows = pairs.iter().flat_map(|(_, pair)| {
        pair.now.disks.devices.iter().map(move |device| {
            let writes = |it: &Progress| {
                Some(it.disks.devices.iter().find(|other| other.path == device.path)?.writes)
            };
            let qualified = if device.is_slower_than_qualified { "slower" } else { "yes" };
            vec![
                Cell::Text(device.path.clone()),
                Cell::Id(pair.process.into()),
                Cell::PerSecond(pair.per_second(device.writes, writes)),
                Cell::Count(device.slow_writes),
                Cell::Nanos(device.p50_ns),
                Cell::Nanos(device.max_ns),
                Cell::Text(qualified.to_owned()),
            ]
        })
    });
    Sheet { columns, lines: lines(rows), ..Sheet::default() }
}
