//! Calls of a machine that is made up: what is counted, what is waited for, and what is kept.

use core::ops::ControlFlow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use calls::{CallWatch, Ends, Machine, Reason, Target, Tracing, Work, watch};
use observe::budgets::{Budget, ProcessorBudget};
use observe::tracepoints::calls::{
    CallEvent, CallHappened, Left, NowIn, Pointed, Scheduled, call_name,
};
use units::{ManualClock, Timestamp};

const MS: u64 = 1_000_000;

#[derive(Default)]
struct MadeUp {
    events: Vec<CallEvent>,
    whom: Option<BTreeSet<u32>>,
    started: Option<u32>,
    links: BTreeMap<(u32, u32), String>,
    now_in: Vec<(u32, u32, NowIn)>,
    end_ns: u64,
    asked: core::cell::Cell<u32>,
    looks_at_quotas: u64,
}

impl Machine for MadeUp {
    fn events(&mut self, is_last: bool, into: &mut Vec<CallEvent>) {
        if is_last {
            into.append(&mut self.events);
        }
    }

    fn tracing(&self) -> Tracing {
        Tracing::default()
    }

    fn no_pointers(&self) -> Option<String> {
        None
    }

    fn whom(&self) -> Option<BTreeSet<u32>> {
        self.whom.clone()
    }

    fn started(&self) -> Option<u32> {
        self.started
    }

    fn now_in(&mut self) -> Vec<(u32, u32, NowIn)> {
        self.now_in.clone()
    }

    fn link(&mut self, process: u32, descriptor: u32) -> Option<String> {
        self.links.get(&(process, descriptor)).cloned()
    }

    fn ends(&mut self, _process: u32, inode: u32) -> Option<Ends> {
        let end = |text: &str| text.parse().ok();
        (inode == 77).then(|| Ends { local: end("10.0.0.1:40000"), remote: end("10.0.0.2:53") })
    }

    fn name(&mut self, number: u32) -> Option<String> {
        (number == 7).then(|| "seven".to_owned())
    }

    fn forget(&mut self, _number: u32) {}

    fn filesystem(&mut self, path: &Path) -> Option<String> {
        path.starts_with("/slow").then(|| "fuse.slow".to_owned())
    }

    fn disk(&mut self, path: &Path) -> Option<String> {
        path.starts_with("/data").then(|| "/dev/sdb1".to_owned())
    }

    fn stands_in(&mut self, _thread: u32) -> Option<String> {
        Some("percpu_rwsem_wait".to_owned())
    }

    fn writes_durably(&mut self, process: u32, path: &Path) -> bool {
        process == 7 && path.ends_with("journal")
    }

    fn quotas(&mut self) -> Vec<(Budget, BTreeSet<u32>)> {
        let quota = |throttled| ProcessorBudget {
            file: "cpu.max",
            quota_us: 20_000,
            period_us: 100_000,
            periods: 2 * throttled,
            throttled,
            ..ProcessorBudget::default()
        };
        self.looks_at_quotas += 1;
        let processors = Some(quota(10 * self.looks_at_quotas));
        let budget = Budget { name: "/pod".to_owned(), processors, ..Budget::default() };
        vec![(budget, BTreeSet::from([7]))]
    }

    fn is_over(&self) -> bool {
        false
    }

    /// The beginning, and the end.
    fn now_ns(&self) -> u64 {
        let asked = self.asked.replace(1);
        if asked == 0 { 0 } else { self.end_ns }
    }

    fn realtime_ahead_ns(&self) -> i64 {
        1_000_000_000
    }

    fn own_ns(&self) -> u64 {
        0
    }

    fn own(&self) -> u32 {
        1
    }

    fn processors(&self) -> usize {
        2
    }
}

fn number(name: &str) -> u32 {
    (0..1000).find(|number| call_name(*number) == Some(name)).expect("a call")
}

fn at(ms: u64, thread: u32, happened: CallHappened) -> CallEvent {
    CallEvent { time_ns: ms * MS, process: 7, thread, happened }
}

fn enter(ms: u64, thread: u32, name: &str, given: &[u64]) -> CallEvent {
    let mut arguments = [0; 6];
    arguments.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
    at(ms, thread, CallHappened::Entered { number: number(name), arguments })
}

fn back(ms: u64, thread: u32, name: &str, value: i64) -> CallEvent {
    at(ms, thread, CallHappened::Returned { number: number(name), value })
}

fn scheduled(thread: u32) -> Scheduled {
    let mut name = *b"seven\0\0\0\0\0\0\0\0\0\0\0";
    if thread != 7 {
        name = *b"other\0\0\0\0\0\0\0\0\0\0\0";
    }
    Scheduled { thread, name }
}

fn switch(ms: u64, from: u32, left: Left, to: u32) -> CallEvent {
    let (from_one, to) = (scheduled(from), scheduled(to));
    let happened = CallHappened::Switched { processor: 0, from: from_one, left, to };
    CallEvent { time_ns: ms * MS, process: from, thread: from, happened }
}

fn woke(ms: u64, by: u32, thread: u32) -> CallEvent {
    let happened = CallHappened::Woke { thread, is_interrupt: false };
    CallEvent { time_ns: ms * MS, process: by, thread: by, happened }
}

fn seen(mut machine: MadeUp, end_ms: u64) -> CallWatch {
    machine.end_ns = end_ms * MS;
    watch(&mut machine, &ManualClock::new(Timestamp(0)), 1, &mut |_| ControlFlow::Break(()))
}

#[test]
fn a_read_that_waits_for_a_file_is_charged_to_the_file_and_its_queueing_to_who_had_the_processor() {
    let events = vec![
        enter(10, 7, "openat", &[0xffff_ff9c]),
        at(10, 7, CallHappened::Pointed(Pointed::Path(b"/slow/a".to_vec()))),
        back(11, 7, "openat", 3),
        enter(20, 7, "read", &[3, 0, 4096]),
        switch(21, 7, Left::Blocked, 0),
        switch(60, 0, Left::Runnable, 9),
        woke(61, 50, 7),
        switch(71, 9, Left::Runnable, 7),
        back(72, 7, "read", 4096),
        enter(80, 7, "close", &[3]),
        back(81, 7, "close", 0),
    ];
    let found = seen(MadeUp { events, ..MadeUp::default() }, 100);
    let read = &found.calls["read"];
    assert_eq!(
        (read.count, read.total_ns, read.waited_ns, read.bytes),
        (1, 52 * MS, 40 * MS, 4096)
    );
    let reasons = found.reasons();
    assert_eq!((reasons[&Reason::File], reasons[&Reason::Processor]), (40 * MS, 10 * MS));
    let slow = &found.slowest[0];
    assert_eq!((&*slow.call, &*slow.arguments), ("read", "3 </slow/a>, 4096 bytes"));
    assert_eq!(slow.processor_taken_by.as_deref(), Some("other (thread 9)"));
    assert_eq!(slow.at_ns, 1_020_000_000);
    let of = found.uses_for(Work::Read);
    assert_eq!(of[0].target(&found), Some(&Target::File("/slow/a".into())));
    assert_eq!(of[0].all.woken_by[0].process, 50);
    assert_eq!(found.filesystems[&of[0].target.unwrap()], "fuse.slow");
    assert_eq!(found.threads[&7].ran_ns, 50 * MS);
}

#[test]
fn a_thread_that_makes_no_calls_is_followed_where_its_process_is_asked_for() {
    let events = || {
        vec![
            switch(20, 7, Left::Runnable, 0),
            switch(60, 0, Left::Runnable, 7),
            switch(70, 7, Left::Runnable, 9),
            switch(95, 9, Left::Runnable, 7),
        ]
    };
    let whom = Some(BTreeSet::from([7]));
    let found = seen(MadeUp { events: events(), whom, ..MadeUp::default() }, 100);
    let reasons = &found.threads[&7].reasons;
    assert_eq!((reasons[&Reason::WakeUp], reasons[&Reason::Processor]), (40 * MS, 25 * MS));
    assert_eq!((found.threads.len(), found.threads[&7].ran_ns), (1, 35 * MS));
    // Of all processes those count that make calls.
    assert!(seen(MadeUp { events: events(), ..MadeUp::default() }, 100).threads.is_empty());
}

#[test]
fn an_answer_that_is_waited_for_by_poll_is_the_name_servers() {
    let polled = || {
        let mut bytes = [4, 0, 0, 0, 1, 0, 0, 0].to_vec();
        bytes.truncate(8);
        at(30, 7, CallHappened::Pointed(Pointed::Polled(bytes)))
    };
    let events = vec![
        enter(10, 7, "sendto", &[4, 0, 30]),
        back(11, 7, "sendto", 30),
        enter(30, 7, "poll", &[9, 1, 5000]),
        polled(),
        switch(31, 7, Left::Sleeping, 0),
        switch(231, 0, Left::Runnable, 7),
        back(232, 7, "poll", 1),
        enter(233, 7, "recvfrom", &[4, 0, 512]),
        back(234, 7, "recvfrom", 60),
        // Nothing was asked: this one waits for something to do.
        enter(240, 7, "recvfrom", &[4, 0, 512]),
        switch(241, 7, Left::Sleeping, 0),
        switch(341, 0, Left::Runnable, 7),
        back(342, 7, "recvfrom", 60),
    ];
    let links = BTreeMap::from([((7, 4), "socket:[77]".to_owned())]);
    let found = seen(MadeUp { events, links, ..MadeUp::default() }, 400);
    let server = &found.name_servers[&(7, "10.0.0.2:53".parse().unwrap())];
    assert_eq!((server.questions, server.answers, server.given_up), (1, 2, 0));
    assert_eq!(server.waited_ns, 300 * MS);
    assert_eq!(found.calls["poll"].count, 1, "it is for an answer");
    assert_eq!((found.calls["recvfrom"].count, found.idle["recvfrom"].count), (1, 1));
    let answers: u64 = found.uses.values().map(|seen| seen.answer_ns).sum();
    assert_eq!(answers, 200 * MS);
}

/// A question at 10 ms, and so many reads after it, each of which waits for 100 ms: at first for
/// nothing but a message of its own.
fn asked_and_read(between: &[CallEvent], last: i64) -> CallWatch {
    let mut events = vec![
        enter(8, 7, "socket", &[2, 1]),
        back(9, 7, "socket", 4),
        enter(10, 7, "connect", &[4, 0]),
        at(10, 7, CallHappened::Pointed(Pointed::Address(vec![2, 0, 19, 136, 10, 0, 0, 9]))),
        back(11, 7, "connect", 0),
        enter(12, 7, "sendto", &[4, 0, 30]),
        back(13, 7, "sendto", 30),
        enter(20, 7, "poll", &[9, 1, 100]),
        at(20, 7, CallHappened::Pointed(Pointed::Polled(vec![4, 0, 0, 0, 1, 0, 0, 0]))),
        switch(21, 7, Left::Sleeping, 0),
        switch(121, 0, Left::Runnable, 7),
        back(122, 7, "poll", 1),
    ];
    events.extend(between.iter().cloned());
    events.push(enter(150, 7, "recvfrom", &[4, 0, 512]));
    events.push(back(151, 7, "recvfrom", last));
    seen(MadeUp { events, ..MadeUp::default() }, 160)
}

#[test]
fn a_wait_is_for_an_answer_when_one_comes_and_not_when_more_is_sent_without_one() {
    let answer_ns = |found: &CallWatch| found.uses.values().map(|it| it.answer_ns).sum::<u64>();
    let answered = asked_and_read(&[], 60);
    assert_eq!((answer_ns(&answered), answered.unanswered.len()), (100 * MS, 0));
    // It went on with what it had to say: a log, or copies of what changes.
    let on = [enter(130, 7, "sendto", &[4, 0, 30]), back(131, 7, "sendto", 30)];
    let shipped = asked_and_read(&on, -11);
    assert_eq!((answer_ns(&shipped), shipped.unanswered.len()), (0, 1));
    let silent = asked_and_read(&[], -11);
    assert_eq!((answer_ns(&silent), silent.unanswered.len()), (100 * MS, 1));
}

#[test]
fn a_named_pipe_that_waits_for_its_other_end_is_no_slow_file() {
    let open = |path: &[u8]| {
        let events = vec![
            enter(10, 7, "openat", &[0xffff_ff9c]),
            at(10, 7, CallHappened::Pointed(Pointed::Path(path.to_vec()))),
            switch(11, 7, Left::Sleeping, 0),
        ];
        seen(MadeUp { events, ..MadeUp::default() }, 100).reasons()
    };
    assert_eq!(open(b"/run/fifo"), BTreeMap::from([(Reason::Pipe, 89 * MS)]));
    assert_eq!(open(b"/slow/file"), BTreeMap::from([(Reason::File, 89 * MS)]));
    assert_eq!(open(b"fifo"), BTreeMap::from([(Reason::Unknown, 89 * MS)]));
}

#[test]
fn quotas_that_were_met_files_that_are_durable_and_where_a_call_stands_are_known() {
    let now = |descriptor| NowIn {
        number: number("write"),
        arguments: [descriptor, 0, 512, 0, 0, 0],
        is_blocked: true,
    };
    let links =
        BTreeMap::from([((7, 3), "/data/journal".to_owned()), ((7, 4), "/data/table".to_owned())]);
    let now_in = vec![(7, 7, now(3)), (7, 8, now(4))];
    let found = seen(MadeUp { links, now_in, ..MadeUp::default() }, 500);
    let quota = found.quota_of(7).expect("its group's");
    assert_eq!((&*quota.group, quota.periods, quota.throttled), ("/pod", 20, 10));
    assert!(found.quota_of(8).is_none());
    let writes = found.uses_for(Work::Write);
    let durable: Vec<bool> =
        writes.iter().map(|of| found.durable.contains(&of.target.unwrap())).collect();
    assert_eq!(durable, [true, false]);
    assert_eq!(writes[0].all.stands_in.as_deref(), Some("percpu_rwsem_wait"));
    assert_eq!(writes[0].all.threads, BTreeSet::from([7]));
}

#[test]
fn a_word_where_waiters_let_others_on_is_a_lock_and_another_is_not() {
    let wait = |ms, thread, word| {
        vec![
            enter(ms, thread, "futex", &[word, 0x80, 0]),
            switch(ms, thread, Left::Sleeping, 0),
            switch(ms + 50, 0, Left::Runnable, thread),
            back(ms + 50, thread, "futex", 0),
        ]
    };
    let wake = |ms, thread, word| {
        let call = enter(ms, thread, "futex", &[word, 0x81, 1]);
        vec![call, back(ms, thread, "futex", 1)]
    };
    let events =
        [wait(10, 7, 0xa0), wake(70, 7, 0xa0), wait(100, 7, 0xb0), wake(160, 8, 0xb0)].concat();
    let found = seen(MadeUp { events, ..MadeUp::default() }, 400);
    let lock = |word: u64| (found.locks[&(7, word)].is_lock(), found.locks[&(7, word)].waited_ns);
    assert_eq!(lock(0xa0), (true, 50 * MS));
    assert_eq!(lock(0xb0), (false, 50 * MS));
    assert_eq!(found.idle["futex"].count, 2);
}

#[test]
fn a_program_counts_from_its_exec_on_and_so_does_what_it_starts() {
    let child = |ms, happened| CallEvent { time_ns: ms * MS, process: 8, thread: 8, happened };
    let stat = number("close");
    let events = vec![
        enter(1, 7, "close", &[9]),
        back(2, 7, "close", 0),
        enter(3, 7, "execve", &[9]),
        at(4, 7, CallHappened::Executed),
        back(5, 7, "execve", 0),
        at(6, 7, CallHappened::Forked { child: 8 }),
        child(7, CallHappened::Entered { number: stat, arguments: [3, 0, 0, 0, 0, 0] }),
        child(8, CallHappened::Returned { number: stat, value: -9 }),
        child(9, CallHappened::Ended { name: scheduled(8).name }),
        CallEvent {
            time_ns: 10 * MS,
            process: 99,
            thread: 99,
            happened: CallHappened::Entered { number: stat, arguments: [0; 6] },
        },
    ];
    let whom = Some(BTreeSet::from([7]));
    let found = seen(MadeUp { events, whom, started: Some(7), ..MadeUp::default() }, 20);
    assert_eq!(found.calls["execve"].count, 1);
    let close = &found.calls["close"];
    assert_eq!((close.count, close.errors.get(&9)), (1, Some(&1)));
    assert_eq!(found.processes.keys().collect::<Vec<_>>(), [&7, &8]);
    assert_eq!(found.processes[&8].name, "other", "short as it was");
    assert_eq!(found.processes[&8].life_ns(), 2 * MS);
}

#[test]
fn what_hangs_all_the_time_is_seen_too() {
    let arguments = [3, 0, 512, 0, 0, 0];
    let now = NowIn { number: number("read"), arguments, is_blocked: true };
    let links = BTreeMap::from([((7, 3), "/slow/b".to_owned())]);
    let now_in = vec![(7, 7, now)];
    let found = seen(MadeUp { links, now_in, ..MadeUp::default() }, 500);
    assert_eq!(found.reasons()[&Reason::File], 500 * MS);
    let slow = &found.slowest[0];
    assert_eq!((slow.ns, &slow.result), (500 * MS, &None));
    assert_eq!(slow.to_string(), "read(3 </slow/b>, 512 bytes) = under way");
    assert_eq!(found.uses_for(Work::Read)[0].all.waited_ns, 500 * MS);
}

#[test]
fn tables_are_bounded_and_what_did_not_fit_is_counted() {
    let many = (0..40_000_u32).flat_map(|thread| {
        let happened = CallHappened::Entered { number: number("close"), arguments: [0; 6] };
        [CallEvent { time_ns: MS, process: thread + 100, thread: thread + 100, happened }]
    });
    let found = seen(MadeUp { events: many.collect(), ..MadeUp::default() }, 10);
    assert!(found.left_out > 20_000, "{}", found.left_out);
    assert!(found.threads.len() <= 1 << 14 && found.processes.len() <= 1 << 14);
}

#[test]
fn who_waits_for_requests_of_a_ring_waits_for_files_where_no_sockets_are_among_them() {
    const READ: u8 = 22;
    const ACCEPT: u8 = 13;
    let links = BTreeMap::from([((7, 5), "/data/table".to_owned())]);
    let ring = |operations: &[(u64, u8)]| {
        let mut events = vec![enter(10, 7, "io_uring_enter", &[4, 1, 1])];
        for &(request, operation) in operations {
            events.push(at(11, 7, CallHappened::Requested { request, operation }));
            if operation == READ {
                events.push(at(11, 7, CallHappened::RequestFile { request, descriptor: 5 }));
            }
        }
        events.extend([
            switch(12, 7, Left::Sleeping, 0),
            woke(52, 0, 7),
            switch(52, 0, Left::Runnable, 7),
            at(53, 7, CallHappened::RequestDone { request: operations[0].0 }),
            back(54, 7, "io_uring_enter", 1),
        ]);
        let links = links.clone();
        seen(MadeUp { events, links, ..MadeUp::default() }, 100)
    };
    let found = ring(&[(99, READ)]);
    assert_eq!(found.reasons()[&Reason::File], 40 * MS);
    let of = &found.uses_for(Work::Requests)[0];
    assert_eq!(of.target(&found), Some(&Target::File("/data/table".into())));
    assert_eq!((of.all.file_ns, found.calls["io_uring_enter"].count), (40 * MS, 1));
    assert_eq!(found.disks[&of.target.unwrap()].as_deref(), Some("/dev/sdb1"));
    // A server that reads files by the ring at which it waits for clients.
    let found = ring(&[(99, READ), (98, ACCEPT)]);
    assert_eq!(found.reasons().get(&Reason::File), None);
    assert_eq!((found.calls.len(), found.idle["io_uring_enter"].count), (0, 1));
}

#[test]
fn who_waits_for_aio_waits_for_the_file_that_was_submitted_to_that_context() {
    let mut request = vec![0; 40];
    request[20] = 5;
    let events = vec![
        enter(10, 7, "io_submit", &[0x1000, 1]),
        at(10, 7, CallHappened::Pointed(Pointed::Submitted(request))),
        back(11, 7, "io_submit", 1),
        enter(12, 7, "io_getevents", &[0x1000, 1, 1]),
        switch(12, 7, Left::Sleeping, 0),
        woke(52, 0, 7),
        switch(52, 0, Left::Runnable, 7),
        back(54, 7, "io_getevents", 1),
        // Nothing is known of that one.
        enter(60, 7, "io_getevents", &[0x2000, 1, 1]),
        switch(60, 7, Left::Sleeping, 0),
        switch(70, 0, Left::Runnable, 7),
        back(70, 7, "io_getevents", 0),
    ];
    let links = BTreeMap::from([((7, 5), "/data/table".to_owned())]);
    let found = seen(MadeUp { events, links, ..MadeUp::default() }, 100);
    let of = found.uses_for(Work::Requests);
    let waits: Vec<_> = of.iter().map(|of| (of.target(&found).cloned(), of.all.file_ns)).collect();
    let table = Target::File("/data/table".into());
    assert_eq!(waits, [(None, 10 * MS), (Some(table), 40 * MS)]);
}
