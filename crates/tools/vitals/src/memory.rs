//! Memory and swap, as `free` of procps 4 and vmstat compute them.

use units::number::real;

use super::figures::{Figure, Interval, Look, Unit};

/// How the kernel gives a number.
const KIBIBYTE: f64 = 1024.0;

/// Memory; nothing where the kernel does not report how much there is.
pub(super) fn figures(now: &Look) -> Vec<Figure> {
    as_free(now).map_or_else(Vec::new, |mut figures| {
        figures.extend(others(now));
        figures
    })
}

/// A number of `/proc/meminfo` in bytes.
fn bytes(now: &Look, name: &str) -> Option<f64> {
    Some(now.number(&format!("memory.{name}"))? * KIBIBYTE)
}

fn figure(name: &'static str, value: f64, source: &'static str, meaning: &'static str) -> Figure {
    Figure { name, value, unit: Unit::Bytes, source, meaning }
}

/// The two lines of `free`, in its order.
fn as_free(now: &Look) -> Option<Vec<Figure>> {
    let of = |name: &str| bytes(now, name);
    let or_none = |name: &str| of(name).unwrap_or(0.0);
    let (total, free) = (of("MemTotal")?, of("MemFree")?);
    // Kernels before 3.14 do not estimate it, and containers may say more than there is.
    let available = of("MemAvailable").filter(|available| *available <= total).unwrap_or(free);
    let cache = or_none("Buffers") + or_none("Cached") + or_none("SReclaimable");
    let (swap, swap_free) = (or_none("SwapTotal"), or_none("SwapFree"));
    Some(vec![
        figure("total", total, "MemTotal of /proc/meminfo", "memory that the kernel can use"),
        figure(
            "used",
            total - available,
            "MemTotal - MemAvailable of /proc/meminfo",
            "what could not be given out without swapping",
        ),
        figure("free", free, "MemFree of /proc/meminfo", "used for nothing at all"),
        figure("shared", or_none("Shmem"), "Shmem of /proc/meminfo", "tmpfs and shared memory"),
        figure(
            "buff/cache",
            cache,
            "Buffers + Cached + SReclaimable of /proc/meminfo",
            "copies of disk blocks and files, and what the kernel can forget",
        ),
        figure(
            "available",
            available,
            "MemAvailable of /proc/meminfo",
            "what new programs can have without swapping, as the kernel estimates it",
        ),
        figure("swap total", swap, "SwapTotal of /proc/meminfo", "space for swapped memory"),
        figure(
            "swap used",
            (swap - swap_free).max(0.0),
            "SwapTotal - SwapFree of /proc/meminfo",
            "memory that was moved to a disk",
        ),
        figure("swap free", swap_free, "SwapFree of /proc/meminfo", "what is left of that space"),
    ])
}

/// What `free` does not show.
fn others(now: &Look) -> Vec<Figure> {
    const OTHERS: [(&str, &str, &str, &str); 13] = [
        ("dirty", "Dirty", "Dirty of /proc/meminfo", "changed in memory, and not yet on its disk"),
        ("writeback", "Writeback", "Writeback of /proc/meminfo", "on its way to a disk"),
        ("anonymous", "AnonPages", "AnonPages of /proc/meminfo", "of processes, without a file"),
        ("mapped", "Mapped", "Mapped of /proc/meminfo", "files that processes have mapped"),
        ("slab", "Slab", "Slab of /proc/meminfo", "tables of the kernel"),
        (
            "slab kept",
            "SUnreclaim",
            "SUnreclaim of /proc/meminfo",
            "tables of the kernel that it cannot forget",
        ),
        (
            "page tables",
            "PageTables",
            "PageTables of /proc/meminfo",
            "where the memory of processes lies",
        ),
        ("kernel stacks", "KernelStack", "KernelStack of /proc/meminfo", "one for each thread"),
        (
            "huge pages",
            "Hugetlb",
            "Hugetlb of /proc/meminfo",
            "set aside as huge pages, used or not",
        ),
        (
            "transparent huge pages",
            "AnonHugePages",
            "AnonHugePages of /proc/meminfo",
            "of processes, in huge pages that the kernel chose",
        ),
        (
            "locked",
            "Mlocked",
            "Mlocked of /proc/meminfo",
            "what processes forbid to be moved to a disk",
        ),
        (
            "committed",
            "Committed_AS",
            "Committed_AS of /proc/meminfo",
            "what processes have asked for and may use",
        ),
        (
            "commit limit",
            "CommitLimit",
            "CommitLimit of /proc/meminfo",
            "the most of that, where vm.overcommit_memory is 2",
        ),
    ];
    let each = OTHERS.iter().filter_map(|(name, field, source, meaning)| {
        Some(figure(name, bytes(now, field)?, source, meaning))
    });
    each.collect()
}

/// Swap and blocks a second.
pub(super) fn paging(interval: Option<Interval<'_>>, now: &Look) -> Vec<Figure> {
    let Some(interval) = interval else { return Vec::new() };
    let page = real(now.page_bytes) / KIBIBYTE;
    let rate = |field: &str, factor: f64| {
        let (before, after) = (interval.before.number(field)?, now.number(field)?);
        Some((after - before).max(0.0) * factor / interval.seconds)
    };
    let figures = [
        (
            "si",
            rate("vmstat.pswpin", page),
            "pswpin of /proc/vmstat, pages",
            "memory that came back from swap",
        ),
        (
            "so",
            rate("vmstat.pswpout", page),
            "pswpout of /proc/vmstat, pages",
            "memory that went to swap",
        ),
        (
            "bi",
            rate("vmstat.pgpgin", 1.0),
            "pgpgin of /proc/vmstat",
            "what block devices read, one on top of another counted twice",
        ),
        (
            "bo",
            rate("vmstat.pgpgout", 1.0),
            "pgpgout of /proc/vmstat",
            "what block devices wrote, one on top of another counted twice",
        ),
    ];
    let unit = Unit::KibibytesPerSecond;
    let each = figures.into_iter().filter_map(|(name, value, source, meaning)| {
        Some(Figure { name, value: value?, unit, source, meaning })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{are, facts};
    use super::super::vitals;
    use super::*;

    fn look(pairs: &[(&str, &str)]) -> Look {
        Look { facts: facts(pairs), page_bytes: 4096, ..Look::default() }
    }

    #[test]
    fn memory_is_computed_as_free_does() {
        let now = look(&[
            ("memory.MemTotal", "1000"),
            ("memory.MemFree", "300"),
            ("memory.MemAvailable", "700"),
            ("memory.Buffers", "10"),
            ("memory.Cached", "200"),
            ("memory.SReclaimable", "40"),
            ("memory.Shmem", "5"),
            ("memory.SwapTotal", "500"),
            ("memory.SwapFree", "450"),
            ("memory.Dirty", "7"),
        ]);
        let found = vitals(None, &now).memory;
        let shown: Vec<(&str, f64)> =
            found.iter().map(|figure| (figure.name, figure.value / 1024.0)).collect();
        let expected = [
            ("total", 1000.0),
            ("used", 300.0),
            ("free", 300.0),
            ("shared", 5.0),
            ("buff/cache", 250.0),
            ("available", 700.0),
            ("swap total", 500.0),
            ("swap used", 50.0),
            ("swap free", 450.0),
            ("dirty", 7.0),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn without_an_estimate_what_is_free_is_available() {
        let pairs = [("memory.MemTotal", "1000"), ("memory.MemFree", "300")];
        let found = vitals(None, &look(&pairs)).memory;
        are(&found, &[("available", 307_200.0), ("used", 716_800.0)]);
        // In a container that was given less than its host has.
        let found = vitals(None, &look(&[&pairs[..], &[("memory.MemAvailable", "2000")]].concat()));
        are(&found.memory, &[("available", 307_200.0)]);
    }

    #[test]
    fn pages_become_kibibytes_a_second_and_blocks_are_kibibytes() {
        let of = |swapped: &str, written: &str, seconds: i64| Look {
            boottime_ns: seconds * 1_000_000_000,
            ..look(&[("vmstat.pswpout", swapped), ("vmstat.pgpgout", written)])
        };
        let found = vitals(Some(&of("100", "1000", 1)), &of("110", "1500", 3)).paging;
        assert_eq!(found.len(), 2);
        are(&found, &[("so", 20.0), ("bo", 250.0)]);
        assert!(vitals(None, &of("1", "1", 1)).paging.is_empty());
    }
}
