//! Findings of system calls, with watches that are made up: each once present and once absent.

use std::collections::{BTreeMap, BTreeSet};

use calls::{
    CallWatch, Ends, LockSeen, Lookups, NameServer, ProcessSeen, Quota, Reason, Taker, Target,
    ThreadSeen, Tracing, Use, UseKey, Woken,
};
use diagnose::calls::diagnose;
use findings::{Diagnosis, Severity};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const FSYNC: u32 = 74;
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLOCK: u32 = 73;
const RECVFROM: u32 = 45;
const CONNECT: u32 = 42;

/// Ten seconds of one process with one thread.
fn watch() -> CallWatch {
    let process = ProcessSeen { name: "server".to_owned(), begun_ns: 0, ended_ns: 10 * SECOND };
    let (ended_ns, ran_ns) = (10 * SECOND, 10 * SECOND);
    let thread = ThreadSeen { process: 7, ended_ns, ran_ns, ..ThreadSeen::default() };
    let names = [(FSYNC, "fsync"), (READ, "read"), (WRITE, "write"), (FLOCK, "flock")];
    CallWatch {
        ns: 10 * SECOND,
        names: names.into_iter().chain([(RECVFROM, "recvfrom"), (CONNECT, "connect")]).collect(),
        processes: BTreeMap::from([(7, process)]),
        threads: BTreeMap::from([(7, thread)]),
        processors: 2,
        ..CallWatch::default()
    }
}

fn used(number: u32, target: Target, of: Use) -> CallWatch {
    let mut watch = watch();
    watch.targets.push(target);
    watch.uses.insert(UseKey { process: 7, number, target: Some(0) }, of);
    watch
}

fn file() -> Target {
    Target::File("/data/log".into())
}

#[track_caller]
fn only(watch: &CallWatch, kind: &str, words: &[&str]) -> Severity {
    let found = diagnose(watch);
    let kinds: Vec<_> = found.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [kind]);
    let said = format!("{:?}", found.findings);
    for word in words {
        assert!(said.contains(word), "{word} in {said}");
    }
    found.findings.first().expect("one finding").severity
}

#[track_caller]
fn none(watch: &CallWatch) {
    assert_eq!(diagnose(watch).findings, []);
}

#[test]
fn a_quiet_watch_has_no_finding_and_says_what_it_costs() {
    let mut quiet = watch();
    quiet.own_ns = SECOND / 5;
    none(&quiet);
    let Diagnosis { looked_at, unseen, .. } = diagnose(&quiet);
    assert!(looked_at[0].contains("took 2.0 % of one processor"), "{looked_at:?}");
    assert!(unseen.is_empty(), "{unseen:?}");
    quiet.tracing = Tracing::Seen { lost_calls: 5, lost_turns: 0, lost_pointers: 1 };
    quiet.no_pointers = Some("CAP_BPF".to_owned());
    assert_eq!(diagnose(&quiet).unseen.len(), 3);
}

#[test]
fn files_that_are_made_durable_cost_from_a_fifth_of_the_time_on() {
    let of = |count, total_ns| Use { count, total_ns, waited_ns: total_ns, ..Use::default() };
    only(
        &used(FSYNC, file(), of(400, 4 * SECOND)),
        "calls.sync",
        &["server (process 7) spent 4.0 s of 10.0 s in fsync of /data/log", "400 calls"],
    );
    none(&used(FSYNC, file(), of(400, SECOND)));
    none(&used(FSYNC, file(), of(3, 30 * MS)));
}

#[test]
fn small_writes_cost_the_time_in_which_they_run() {
    let of = |ran_ns, small| Use {
        count: 100_000,
        small,
        bytes: 100_000,
        total_ns: 4 * SECOND,
        ran_ns,
        ..Use::default()
    };
    let small = of(4 * SECOND, 100_000);
    only(&used(WRITE, file(), small), "calls.small_writes", &["/data/log 1 B at a time"]);
    none(&used(WRITE, file(), of(4 * SECOND, 10_000)));
    // Something else makes them wait.
    let waits = Use { file_ns: 4 * SECOND, ..of(SECOND / 10, 100_000) };
    only(&used(WRITE, file(), waits), "calls.slow_file", &[]);
}

#[test]
fn a_file_that_is_served_by_a_program_is_told_from_one_on_a_disk() {
    let woken_by = vec![Woken { process: 9, name: "sshfs".to_owned(), count: 40 }];
    let (total_ns, file_ns) = (5 * SECOND, 5 * SECOND);
    let of = Use { count: 40, total_ns, file_ns, woken_by, ..Use::default() };
    let mut slow = used(READ, file(), of);
    let disk = format!("{:?}", diagnose(&slow).findings);
    assert!(!disk.contains("sshfs") && disk.contains("diagnose io"), "{disk}");
    slow.filesystems.insert(0, "fuse.sshfs".to_owned());
    only(&slow, "calls.slow_file", &["fuse.sshfs", "ended by sshfs (process 9): 40"]);
    // A device that programs never wait for.
    let of = Use { count: 40, file_ns: 5 * SECOND, ..Use::default() };
    none(&used(READ, Target::File("/dev/null".into()), of));
}

#[test]
fn missing_files_are_a_note_as_long_as_they_cost_little() {
    let with = |missing, missing_ns| {
        let paths = BTreeMap::from([("/a/b/x.so".to_owned(), missing)]);
        let lookups = Lookups { count: 4000, missing, missing_ns, paths };
        CallWatch { lookups: BTreeMap::from([(7, lookups)]), ..watch() }
    };
    let words = ["/a/b: 3000", "/a/b/x.so: 3000"];
    assert_eq!(only(&with(3000, 20 * MS), "calls.missing_files", &words), Severity::Note);
    assert_eq!(only(&with(3000, SECOND), "calls.missing_files", &words), Severity::Warning);
    none(&with(1500, SECOND));
}

#[test]
fn a_lock_is_named_and_a_queue_of_work_is_not() {
    let with = |is_mutex, wakers: &[u32]| {
        let lock = LockSeen {
            waits: 30,
            waited_ns: 8 * SECOND,
            waiters: BTreeSet::from([7, 8]),
            wakers: wakers.iter().copied().collect(),
            is_mutex,
            woken_by: Vec::new(),
        };
        CallWatch { locks: BTreeMap::from([((7, 0x7f00), lock)]), ..watch() }
    };
    only(&with(true, &[]), "calls.lock", &["30 waits by 2 threads", "0x7f00"]);
    only(&with(false, &[8]), "calls.lock", &["let others on later"]);
    none(&with(false, &[9]));
    let waited = Use { count: 1, waited_ns: 3 * SECOND, ..Use::default() };
    only(&used(FLOCK, file(), waited), "calls.file_lock", &["the lock of /data/log"]);
}

#[test]
fn a_name_server_that_answers_late_is_told_from_one_that_is_silent() {
    let with = |answers, given_up, waited_ns| {
        let seen = NameServer { questions: 6, answers, given_up, waited_ns };
        let key = (7, "10.0.0.2:53".parse().unwrap());
        CallWatch { name_servers: BTreeMap::from([(key, seen)]), ..watch() }
    };
    only(
        &with(6, 0, 3 * SECOND),
        "calls.names",
        &["10.0.0.2:53", "6 questions", "takes that long"],
    );
    only(&with(0, 3, 9 * SECOND), "calls.names", &["No answer came"]);
    none(&with(6, 0, SECOND));
}

#[test]
fn a_server_that_is_asked_is_named_and_one_that_asks_is_not() {
    let ends = Ends { local: None, remote: "10.0.0.9:5432".parse().ok() };
    let of = |answer_ns| Use { count: 90, waited_ns: 9 * SECOND, answer_ns, ..Use::default() };
    only(&used(RECVFROM, Target::Socket(ends), of(6 * SECOND)), "calls.peer", &["10.0.0.9:5432"]);
    none(&used(RECVFROM, Target::Socket(ends), of(0)));
}

#[test]
fn an_end_that_sends_nothing_may_have_nothing_to_say() {
    let ends = Ends { local: None, remote: "10.0.0.9:514".parse().ok() };
    let of = Use { count: 9, waited_ns: 9 * SECOND, answer_ns: 6 * SECOND, ..Use::default() };
    let mut silent = used(RECVFROM, Target::Socket(ends), of);
    silent.unanswered.insert(0);
    let words = ["it hangs, or what was sent asks for no answer"];
    assert_eq!(only(&silent, "calls.peer", &words), Severity::Note);
}

#[test]
fn a_write_that_waits_is_told_by_its_signs_and_given_no_advice_for_reads() {
    let of = Use {
        count: 40,
        total_ns: 5 * SECOND,
        file_ns: 5 * SECOND,
        threads: BTreeSet::from([7]),
        ..Use::default()
    };
    let said = |watch: &CallWatch| {
        only(watch, "calls.slow_file", &["waited 5.0 s of 10.0 s for writes to /data/log"]);
        let said = format!("{:?}", diagnose(watch).findings);
        assert!(!said.contains("readahead") && !said.contains("not in memory"), "{said}");
        said
    };
    let plain = used(WRITE, file(), of.clone());
    let words = said(&plain);
    assert!(words.contains("cannot be told") && words.contains("wchan"), "{words}");
    let mut durable = plain.clone();
    durable.durable.insert(0);
    assert!(said(&durable).contains("opened with O_SYNC"));
    let stands = |function: &str| {
        used(WRITE, file(), Use { stands_in: Some(function.to_owned()), ..of.clone() })
    };
    for (function, words) in [
        ("percpu_rwsem_wait", "is frozen (fsfreeze, a snapshot)"),
        ("balance_dirty_pages", "holds the writer back"),
        ("rwsem_down_write_slowpath", "the file's lock in the kernel"),
    ] {
        let found = said(&stands(function));
        assert!(found.contains(words) && found.contains(function), "{found}");
    }
}

#[test]
fn threads_that_wait_at_the_same_time_wait_together() {
    let threads = (10..18).collect::<BTreeSet<u32>>();
    let woken_by = vec![Woken { process: 7, name: "server".to_owned(), count: 40 }];
    let of = Use { count: 80, waited_ns: 40 * SECOND, threads, woken_by, ..Use::default() };
    let words = [
        "8 threads of server (process 7) waited 40.0 s together, in 10.0 s, for the lock",
        "Another thread of the same program",
    ];
    only(&used(FLOCK, file(), of.clone()), "calls.file_lock", &words);
    let other = vec![Woken { process: 8, name: "other".to_owned(), count: 1 }];
    let of = Use { woken_by: other, ..of };
    only(&used(FLOCK, file(), of), "calls.file_lock", &["Another process has locked"]);
}

#[test]
fn a_reader_and_a_listener_that_are_slow_are_named() {
    let of = |waited_ns| Use { count: 9, waited_ns, ..Use::default() };
    let pipe = || Target::Pipe("pipe:[9]".to_owned());
    let words = ["server (process 7) waited 6.0 s of 10.0 s for the reader of pipe:[9]"];
    only(&used(WRITE, pipe(), of(6 * SECOND)), "calls.reader", &words);
    let local = Target::Local(Some("/run/log".into()));
    only(&used(WRITE, local.clone(), of(6 * SECOND)), "calls.reader", &["reads more slowly"]);
    none(&used(WRITE, pipe(), of(SECOND)));
    let ends = Ends { local: None, remote: "10.0.0.9:5432".parse().ok() };
    let words = ["connections to be made: socket ? to 10.0.0.9:5432", "after 1, 3 and 7 seconds"];
    only(&used(CONNECT, Target::Socket(ends), of(6 * SECOND)), "calls.connect", &words);
    only(&used(CONNECT, local, of(6 * SECOND)), "calls.connect", &["does not accept"]);
    none(&used(CONNECT, Target::Socket(ends), of(SECOND)));
}

#[test]
fn a_quota_that_was_met_is_the_reason_whoever_had_the_processor() {
    let with = |reason, throttled| {
        let mut watch = watch();
        watch.threads.get_mut(&7).unwrap().reasons.insert(reason, 5 * SECOND);
        watch.quotas.push(Quota {
            group: "/pod".to_owned(),
            file: "/sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us".into(),
            unlimited: "-1",
            quota_us: 20_000,
            period_us: 100_000,
            periods: 50,
            throttled,
            members: Some(BTreeSet::from([7])),
        });
        watch
    };
    let words = [
        "its cgroup /pod may use 20 % of one processor",
        "in 28 of 50 periods",
        "echo -1 > '/sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us'",
    ];
    only(&with(Reason::Processor, 28), "calls.held_back", &words);
    only(&with(Reason::WakeUp, 28), "calls.held_back", &words);
    only(&with(Reason::Processor, 1), "calls.processor", &[]);
    let mut another = with(Reason::Processor, 28);
    another.quotas[0].members = Some(BTreeSet::from([8]));
    only(&another, "calls.processor", &[]);
}

#[test]
fn who_has_the_processor_is_named_and_a_limit_is_told_from_it() {
    let with = |reason, ns| {
        let mut watch = watch();
        let thread = watch.threads.get_mut(&7).unwrap();
        thread.reasons.insert(reason, ns);
        thread.takers.push(Taker { thread: 99, name: "hog".to_owned(), ns });
        watch
    };
    let words = ["hog (thread 99) had it", "2 processors"];
    only(&with(Reason::Processor, 5 * SECOND), "calls.processor", &words);
    let had = |each: &[u64]| {
        let mut watch = with(Reason::Processor, 5 * SECOND);
        let taker = |(thread, ns): (u32, &u64)| Taker { thread, name: "hog".to_owned(), ns: *ns };
        let takers = (99..).zip(each).map(taker).collect();
        watch.threads.get_mut(&7).unwrap().takers = takers;
        watch
    };
    let several = had(&[SECOND, 2 * SECOND, SECOND]);
    only(&several, "calls.processor", &["others had it, hog (thread 100) longest"]);
    // The kernel kept most of the turns back.
    let few = had(&[SECOND / 10, SECOND / 20]);
    only(&few, "calls.processor", &["who had it is known of 150"]);
    only(&had(&[]), "calls.processor", &["who had it is known of 0"]);
    none(&with(Reason::Processor, SECOND));
    only(&with(Reason::WakeUp, 5 * SECOND), "calls.held_back", &["no group that is seen has"]);
    only(
        &with(Reason::PageFault, 5 * SECOND),
        "calls.page_faults",
        &["outside of any system call"],
    );
    for by_design in [Reason::Timer, Reason::Events, Reason::Child, Reason::Futex] {
        none(&with(by_design, 9 * SECOND));
    }
}
