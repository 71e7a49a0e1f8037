//! Files: waited for, made durable, read and written in small pieces, looked for in vain.

use ::calls::{CallWatch, Lookups, Target, Use, UsesOf, Work};
use units::ByteSize;

use super::measure::{is_share, kind_of, long, reach, slowest};
use super::slow;
use findings::words::{percent, plural, some, time};
use findings::{Finding, Remedy, Severity};

pub(super) fn findings(watch: &CallWatch) -> Vec<Finding> {
    let mut findings = Vec::new();
    for of in watch.uses_for(Work::Sync) {
        findings.extend(sync(watch, &of));
    }
    for work in [Work::Write, Work::Read, Work::Lookup, Work::Requests] {
        for of in watch.uses_for(work) {
            let found = small(watch, &of, work).or_else(|| slow::finding(watch, &of, work));
            findings.extend(found);
        }
    }
    findings
        .extend(watch.lookups.iter().filter_map(|(process, seen)| missing(watch, *process, seen)));
    findings.extend(watch.processes.keys().filter_map(|process| faults(watch, *process)));
    findings
}

fn sync(watch: &CallWatch, of: &UsesOf) -> Option<Finding> {
    const ENOUGH: u64 = 10;
    const LONG_NS: u64 = 1_000_000_000;
    let (count, total_ns) = (of.all.count, of.all.total_ns);
    let life_ns = watch.life_ns(of.process);
    let (who, threads) = (watch.process_label(of.process), of.all.threads.len());
    if !is_share(total_ns, life_ns, 20) || (count < ENOUGH && total_ns < LONG_NS) {
        return None;
    }
    let name = of.target_name(watch);
    let calls = of.calls.join(" and ");
    let mut evidence = vec![format!(
        "{} of {calls}, {} each in the mean",
        plural(usize::try_from(count).unwrap_or(usize::MAX), "call"),
        time(total_ns / count.max(1))
    )];
    let written = watch.uses_for(Work::Write).into_iter();
    let written = written.filter(|one| one.process == of.process && one.target == of.target);
    let bytes: u64 = written.map(|one| one.all.bytes).sum();
    if bytes > 0 {
        let each = ByteSize(bytes / count.max(1));
        evidence.push(format!("{} were written to it, {each} for each call", ByteSize(bytes)));
    }
    evidence.extend(kind_of(watch, of));
    evidence.extend(slowest(watch, |call| of.has(call, &name)));
    Some(Finding {
        kind: "calls.sync",
        severity: Severity::Warning,
        reach: reach(total_ns),
        what: if threads > 1 {
            format!(
                "{threads} threads of {who} spent {} together, in {}, in {calls} of {name}",
                long(total_ns),
                long(life_ns),
            )
        } else {
            format!("{who} spent {} of {} in {calls} of {name}", long(total_ns), long(life_ns))
        },
        evidence,
        cause: "Each of these calls returns when the disk has the data for good: the journal of \
                the file system is written, and the disk's cache is flushed. The thread does \
                nothing else meanwhile."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand("one call for several records, or for several writers together"),
            Remedy::by_hand("fdatasync, on a file that has its length already (fallocate)"),
            Remedy::by_hand(
                "wirespool diagnose io shows the requests behind it: journal, flushes, the disk",
            ),
        ],
    })
}

/// Many calls that read or write a few bytes each.
fn small(watch: &CallWatch, of: &UsesOf, work: Work) -> Option<Finding> {
    const ENOUGH: u64 = 2000;
    let Use { count, ran_ns, bytes, small, .. } = of.all;
    // Of its time with a processor: that others have it is another finding.
    let all_ns = watch.ran_ns(of.process);
    let target = of.target(watch)?;
    let is_stream = matches!(target, Target::File(_) | Target::Pipe(_));
    let is_mostly = small * 10 >= count * 9;
    if small < ENOUGH || !is_mostly || !is_stream || !is_share(ran_ns, all_ns, 20) {
        return None;
    }
    let (verb, kind) = match work {
        Work::Write => ("writes to", "calls.small_writes"),
        _ => ("reads from", "calls.small_reads"),
    };
    Some(Finding {
        kind,
        severity: Severity::Warning,
        reach: reach(ran_ns),
        what: format!(
            "{} {verb} {target} {} at a time",
            watch.process_label(of.process),
            ByteSize((bytes / count.max(1)).max(1))
        ),
        evidence: vec![
            format!("{count} calls of {} moved {}", of.calls.join(" and "), ByteSize(bytes)),
            format!("they took {} of the {} in which it ran", long(ran_ns), long(all_ns)),
            "the watch itself makes each call some microseconds longer".to_owned(),
        ],
        cause: "A system call costs the same whether it moves one byte or 64 KiB: entering the \
                kernel, finding the file, its locks."
            .to_owned(),
        remedies: vec![Remedy::by_hand(
            "a buffer in the program: fwrite instead of write, BufWriter, \
             open(..., buffering=65536), or a larger block (dd bs=1M)",
        )],
    })
}

/// Files that are looked for again and again where they are not.
fn missing(watch: &CallWatch, process: u32, seen: &Lookups) -> Option<Finding> {
    const ENOUGH: u64 = 1000;
    if seen.missing < ENOUGH || seen.missing * 2 < seen.count {
        return None;
    }
    let life_ns = watch.life_ns(process);
    let is_costly = is_share(seen.missing_ns, life_ns, 5) || seen.missing_ns * 5 >= life_ns;
    let known: u64 = seen.paths.values().sum();
    let most = |mut counts: Vec<(u64, &str)>| {
        counts.sort_by(|one, other| other.cmp(one));
        some(counts.into_iter().map(|(count, name)| format!("{name}: {count}")))
    };
    let by_path = seen.paths.iter().map(|(path, count)| (*count, path.as_str())).collect();
    let by_folder = seen.folders().into_iter().map(|(folder, count)| (count, folder)).collect();
    let mut evidence = vec![format!(
        "{} of {} lookups found nothing (ENOENT), {} of {}",
        seen.missing,
        seen.count,
        long(seen.missing_ns),
        long(life_ns)
    )];
    if known > 0 {
        evidence.push(format!("{} paths: {}", seen.paths.len(), most(by_path)));
        evidence.push(format!("folders: {}", most(by_folder)));
    } else {
        evidence.push("which paths it was is not known".to_owned());
    }
    Some(Finding {
        kind: "calls.missing_files",
        severity: if is_costly { Severity::Warning } else { Severity::Note },
        reach: reach(seen.missing_ns),
        what: format!(
            "{} looks for files that are not there: {} times",
            watch.process_label(process),
            seen.missing
        ),
        evidence,
        cause: "The program tries several folders for each file, a search path, or asks again for \
                a file that it could remember to be missing. On network file systems each of these \
                is a round trip."
            .to_owned(),
        remedies: vec![Remedy::by_hand(
            "shorten the search path (PATH, LD_LIBRARY_PATH, PYTHONPATH, include paths) or put the \
             folder that has the files first; make the file that is asked for; remember what is \
             missing",
        )],
    })
}

/// Memory of files that has to be read first.
fn faults(watch: &CallWatch, process: u32) -> Option<Finding> {
    let of = watch.threads.iter().filter(|(_, seen)| seen.process == process);
    let fault_ns = |seen: &::calls::ThreadSeen| {
        seen.reasons.get(&::calls::Reason::PageFault).copied().unwrap_or(0)
    };
    let (thread, seen) = of.max_by_key(|(_, seen)| fault_ns(seen))?;
    let ns = fault_ns(seen);
    is_share(ns, seen.life_ns(), 20).then(|| Finding {
        kind: "calls.page_faults",
        severity: Severity::Warning,
        reach: reach(ns),
        what: format!(
            "{} waited {} of {} for memory that had to be read",
            watch.process_label(process),
            long(ns),
            long(seen.life_ns())
        ),
        evidence: vec![format!(
            "thread {thread} was without a processor outside of any system call for {}",
            percent(ns, seen.life_ns())
        )],
        cause: "It touched pages of its program, of a mapped file or of swap that were not in \
                memory; each is a read of the disk that nothing announces."
            .to_owned(),
        remedies: vec![
            Remedy::by_hand("wirespool diagnose io names the files whose mappings fault"),
            Remedy::by_hand("wirespool diagnose host says whether memory is short"),
        ],
    })
}
