use calls::{
    CallSeen, CallWatch, Lookups, ProcessSeen, Reason, SlowCall, Taker, Target, ThreadSeen,
    Tracing, Use, UseKey, Woken,
};
use findings::Diagnosis;

use super::*;

/// One of everything that is shown as JSON.
fn watch() -> CallWatch {
    let mut call = CallSeen {
        count: 3,
        errors: [(2, 1)].into(),
        total_ns: 6_000,
        waited_ns: 4_000,
        bytes: 512,
        ..CallSeen::default()
    };
    for ns in [1_000, 2_000, 3_000] {
        call.times.add(ns);
    }
    let reasons = [(Reason::Processor, 500), (Reason::Timer, 700)];
    let slow = SlowCall {
        call: "fsync".to_owned(),
        arguments: "3 </data/log>".to_owned(),
        result: Some("0".to_owned()),
        at_ns: 1_800_000_000_000_000_000,
        ns: 3_000,
        process: 7,
        process_name: "server".to_owned(),
        thread: 8,
        reasons: reasons.into(),
        woken_by: Some("disk (process 9)".to_owned()),
        processor_taken_by: None,
    };
    let thread = ThreadSeen {
        process: 7,
        name: "worker".to_owned(),
        begun_ns: 100,
        ended_ns: 9_100,
        calls: 3,
        ran_ns: 7_800,
        reasons: reasons.into(),
        takers: vec![Taker { thread: 99, name: "hog".to_owned(), ns: 400 }],
    };
    let woken_by = vec![Woken { process: 9, name: "disk".to_owned(), count: 2 }];
    let of = Use {
        count: 3,
        total_ns: 6_000,
        ran_ns: 1,
        waited_ns: 4_000,
        file_ns: 2,
        bytes: 512,
        small: 3,
        woken_by,
        ..Use::default()
    };
    let lookups = Lookups { count: 5, missing: 4, ..Lookups::default() };
    let process = ProcessSeen { name: "server".to_owned(), begun_ns: 100, ended_ns: 9_100 };
    CallWatch {
        ns: 10_000,
        own_ns: 10,
        tracing: Tracing::Seen { lost_calls: 1, lost_turns: 2, lost_pointers: 3 },
        calls: [("fsync".to_owned(), call)].into(),
        idle: [("poll".to_owned(), CallSeen::default())].into(),
        slowest: vec![slow],
        uses: [(UseKey { process: 7, number: 74, target: Some(0) }, of)].into(),
        targets: vec![Target::File("/data/log".into())],
        names: [(74, "fsync")].into(),
        processes: [(7, process), (6, ProcessSeen::default())].into(),
        threads: [(8, thread)].into(),
        lookups: [(7, lookups)].into(),
        left_out: 4,
        ..CallWatch::default()
    }
}

#[test]
fn json_has_its_names_and_their_order() {
    assert_eq!(calls_json(&watch(), &Diagnosis::default()), include_str!("frozen.json"));
    let refused = CallWatch {
        tracing: Tracing::Refused("root".to_owned()),
        no_pointers: Some("an older kernel".to_owned()),
        ..CallWatch::default()
    };
    assert_eq!(calls_json(&refused, &Diagnosis::default()), include_str!("frozen_refused.json"));
}
