//! Attempts that fail, and connections that are reset.

use super::*;

fn attempt(remote: &str, end: AttemptEnd) -> (FailedAttempt, Option<AttemptBy>) {
    let by = AttemptBy { owner: owner(7, "poller"), namespace: Some(0) };
    let local = if remote.starts_with('[') { "[::1]:4000" } else { "10.0.0.1:4000" };
    let attempt = FailedAttempt {
        process: 7,
        local: local.parse().unwrap(),
        remote: remote.parse().unwrap(),
        waited_ns: Some(100_000),
        end,
    };
    (attempt, Some(by))
}

/// So many attempts to a place at each of eleven looks, beside what the look has.
fn attempted(
    (remote, count, end): (&str, usize, AttemptEnd),
    look: impl Fn(u32) -> NamespaceLook,
) -> Diagnosis {
    let mut watch = Watch::default();
    for number in 0..=10_u32 {
        let attempts = (0..count).map(|_| attempt(remote, end)).collect();
        let owners = [(1, owner(10, "client")), (2, owner(20, "server"))].into();
        let namespaces = vec![(Place::default(), look(number))];
        let seen = TcpLook { namespaces, attempts, owners, ..TcpLook::default() };
        watch.take(i64::from(number) * SECOND, seen);
    }
    diagnose(&watch)
}

#[test]
fn an_address_that_is_tried_first_and_another_one_that_answers_are_no_fault() {
    let look = |opened: u32| {
        move |number: u32| {
            let listener = socket(TcpState::Listen, 2, ["0.0.0.0:7320", "0.0.0.0:0"], None);
            let closed = (0..number * opened).map(|index| {
                let local = format!("127.0.0.1:{}", 40_000 + index);
                let ends = [&*local, "127.0.0.1:7320"];
                socket(TcpState::TimeWait, 1000 + index, ends, None)
            });
            let sockets = core::iter::once(listener).chain(closed).collect();
            NamespaceLook { sockets, ..NamespaceLook::default() }
        }
    };
    let refused = ("[::1]:7320", 10, AttemptEnd::Reset);
    let served = attempted(refused, look(10));
    assert_eq!(kinds(&served), ["tcp.refused"]);
    assert!(served.is_clean(), "{served:#?}");
    let cause = &served.findings[0].cause;
    assert!(cause.contains("is served at 127.0.0.1"), "{cause}");
    let in_vain = attempted(refused, look(0));
    assert_eq!(in_vain.findings[0].severity, Severity::Problem);
    let remedies = format!("{:?}", in_vain.findings[0].remedies);
    assert!(!remedies.contains("start the program"), "it runs: {remedies}");
    // Another port of that address is another service.
    let other = attempted(("[::1]:7321", 10, AttemptEnd::Reset), look(10));
    assert!(!other.is_clean(), "{other:#?}");
}

#[test]
fn connections_that_are_reset_say_how_where_it_is_counted() {
    let look = |closed: u64| {
        move |number: u32| {
            let listener = socket(TcpState::Listen, 2, ["0.0.0.0:9001", "0.0.0.0:0"], None);
            let links = vec![link("10.0.0.2", LinkTotals::default())];
            let look = NamespaceLook {
                sockets: vec![listener],
                ..with_paths(PathLook { links, ..PathLook::default() })
            };
            with_counters(look, &[("TcpExtTCPAbortOnData", closed * u64::from(number))])
        }
    };
    let reset = ("10.0.0.2:9001", 20, AttemptEnd::ResetOpen);
    let report = attempted(reset, look(20));
    assert_eq!(kinds(&report), ["tcp.reset"]);
    let finding = &report.findings[0];
    assert_eq!(finding.what, "10.0.0.2:9001 resets open connections of poller (process 7)");
    assert!(finding.cause.contains("server (process 20) closes them with SO_LINGER"));
    let elsewhere = attempted(reset, look(0));
    assert!(elsewhere.findings[0].cause.starts_with("No program has closed"), "{elsewhere:#?}");
    assert!(attempted(("10.0.0.2:9001", 0, AttemptEnd::ResetOpen), look(0)).is_clean());
}

#[test]
fn an_address_without_a_route_is_told_by_the_type_of_the_route() {
    let look = |_: u32| NamespaceLook::default();
    let of = |count, why| attempted(("10.9.9.9:7001", count, AttemptEnd::NoRoute(why)), look);
    let report = of(10, NoRoute::Unreachable);
    assert_eq!(kinds(&report), ["tcp.no_route"]);
    let found = &report.findings[0];
    assert_eq!(found.severity, Severity::Problem);
    assert_eq!(
        found.what,
        "poller (process 7) cannot connect to 10.9.9.9:7001: no route leads there"
    );
    let cause = "A route of this machine that contains 10.9.9.9 has the type unreachable.";
    assert_eq!(found.cause, cause);
    assert!(of(10, NoRoute::None).findings[0].cause.contains("there is no default route of IPv4"));
    assert!(of(0, NoRoute::Unreachable).is_clean());
    // Programs try IPv6 first, also where the machine has none.
    let served = |number: u32| {
        let closed = (0..number * 10).map(|index| {
            let local = format!("10.0.0.1:{}", 40_000 + index);
            socket(TcpState::TimeWait, 1000 + index, [&*local, "10.0.0.2:443"], None)
        });
        NamespaceLook { sockets: closed.collect(), ..NamespaceLook::default() }
    };
    let first = ("[2001:db8::7]:443", 10, AttemptEnd::NoRoute(NoRoute::None));
    let report = attempted(first, served);
    assert_eq!(kinds(&report), ["tcp.no_route"]);
    assert!(report.is_clean(), "{report:#?}");
}

/// A client whose SYNs are answered with packets that it drops.
fn asking(number: u32, dropped: u64) -> NamespaceLook {
    let ends = ["10.0.0.1:4000", "10.0.0.2:9001"];
    let waiting = TcpSocket { retries: 2, ..socket(TcpState::SynSent, 1, ends, info()) };
    let look = NamespaceLook { sockets: vec![waiting], ..NamespaceLook::default() };
    with_counters(look, &[("TcpExtIPReversePathFilter", dropped * u64::from(number))])
}

#[test]
fn answers_that_reverse_path_filtering_drops_are_told_from_a_firewall() {
    let report = over(|number| asking(number, 2));
    assert_eq!(kinds(&report), ["net.reverse_path", "tcp.no_answer"]);
    let consequence = &report.findings[1];
    assert!(consequence.cause.contains("See net.reverse_path"), "{consequence:#?}");
    assert!(!consequence.cause.contains("firewall"), "{consequence:#?}");
    assert_eq!(report.findings[0].severity, Severity::Problem);
    assert_eq!(kinds(&over(|number| asking(number, 0))), ["tcp.no_answer"]);
    // By itself it is what it is for.
    let alone = over(|number| {
        with_counters(NamespaceLook::default(), &[("TcpExtIPReversePathFilter", number.into())])
    });
    assert_eq!(kinds(&alone), ["net.reverse_path"]);
    assert!(alone.is_clean());
}

#[test]
fn ports_that_are_reserved_are_not_given() {
    let look = |used: u32, reserved: &'static str| {
        move |_: u32| {
            let connection = |number: u32| {
                let local = format!("10.0.0.1:{}", 40_000 + number);
                TcpSocket {
                    cookie: 1000 + u64::from(number),
                    ..open(1, [&*local, "10.0.0.2:9001"], info())
                }
            };
            let settings =
                [("ip_local_port_range", "40000 40999"), ("ip_local_reserved_ports", reserved)];
            let text = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            NamespaceLook {
                sockets: (0..used).map(connection).collect(),
                settings: settings.map(text).into(),
                ..NamespaceLook::default()
            }
        }
    };
    let report = over(look(40, "40040-40998,40999"));
    assert_eq!(kinds(&report), ["tcp.ports"]);
    assert_eq!(report.findings[0].severity, Severity::Problem);
    let evidence = &report.findings[0].evidence;
    assert!(evidence.iter().any(|line| line.starts_with("960 more of that range")), "{evidence:?}");
    assert!(over(look(40, "")).is_clean());
    assert!(over(look(20, "40040-40999")).is_clean(), "half of those that are given");
    // Attempts that found none need no count.
    let found = ("10.0.0.2:9001", 2, AttemptEnd::Closed);
    let mut watch = Watch::default();
    for number in 0..=10_u32 {
        let without = |_| {
            let (mut attempt, by) = attempt(found.0, found.2);
            attempt.local = "10.0.0.1:0".parse().unwrap();
            (attempt, by)
        };
        let attempts = (0..found.1).map(without).collect();
        let namespaces = vec![(Place::default(), look(40, "")(number))];
        watch.take(
            i64::from(number) * SECOND,
            TcpLook { namespaces, attempts, ..TcpLook::default() },
        );
    }
    assert_eq!(kinds(&diagnose(&watch)), ["tcp.ports"]);
}
