//! Queues of listeners that overflow between looks, and neighbours on this machine.

use super::*;

fn listener(backlog: u32, drops: Option<u32>) -> TcpSocket {
    let listener = socket(TcpState::Listen, 2, ["0.0.0.0:9001", "0.0.0.0:0"], None);
    let memory = Some(SocketMemory { drops, ..SocketMemory::default() });
    TcpSocket { send_queue: backlog, memory, ..listener }
}

#[test]
fn a_listener_whose_queue_overflows_between_looks_is_named() {
    let at = |number: u32, drops: Option<u32>| {
        let drops = drops.map(|drops| drops * number);
        let look = NamespaceLook { sockets: vec![listener(5, drops)], ..NamespaceLook::default() };
        with_counters(look, &[("TcpExtListenOverflows", 70 * u64::from(number))])
    };
    let report = over(|number| at(number, Some(70)));
    assert_eq!(kinds(&report), ["tcp.accept_queue"]);
    let finding = &report.findings[0];
    assert!(finding.what.contains("port 9001 of server (process 20) is too short"), "{finding:#?}");
    assert!(finding.evidence[1].contains("its backlog is 5"), "{finding:#?}");
    let unknown = over(|number| at(number, None));
    assert!(unknown.findings[0].cause.contains("Which one is not known"), "{unknown:#?}");
    let of_another = over(|number| at(number, Some(0)));
    assert!(!of_another.findings[0].what.contains("9001"), "{of_another:#?}");
}

#[test]
fn who_gets_no_answer_is_told_whether_the_queue_was_full() {
    let at = |number: u32, drops: u32| {
        let ends = ["10.0.0.1:4000", "10.0.0.2:9001"];
        let waiting = TcpSocket { retries: 2, ..socket(TcpState::SynSent, 1, ends, info()) };
        let of = |address, sockets| NamespaceLook {
            sockets,
            ..with_paths(PathLook {
                links: vec![link(address, LinkTotals::default())],
                ..PathLook::default()
            })
        };
        let there = of("10.0.0.2", vec![listener(5, Some(drops * number))]);
        let overflows = [("TcpExtListenOverflows", u64::from(drops * number))];
        vec![of("10.0.0.1", vec![waiting]), with_counters(there, &overflows)]
    };
    let full = seen((0..=10).map(|number| at(number, 7)).collect());
    assert_eq!(kinds(&full), ["tcp.accept_queue", "tcp.no_answer"]);
    let cause = &full.findings[1].cause;
    assert!(
        cause.contains("its queue was full 70 times") && !cause.contains("firewall"),
        "{cause}"
    );
    let empty = seen((0..=10).map(|number| at(number, 0)).collect());
    assert_eq!(kinds(&empty), ["tcp.no_answer"]);
    let cause = &empty.findings[0].cause;
    assert!(cause.contains("never full") && cause.contains("firewall"), "{cause}");
}

#[test]
fn a_neighbour_on_this_machine_is_not_down() {
    let at = |address: &str| {
        let asked = Neighbour {
            link: 2,
            address: "10.0.0.2".parse().unwrap(),
            link_address: None,
            state: NeighbourState::Asked,
        };
        let of = |address, neighbours| {
            with_paths(PathLook {
                links: vec![link(address, LinkTotals::default())],
                neighbours,
                ..PathLook::default()
            })
        };
        vec![of("10.0.0.1", vec![asked]), of(address, Vec::new())]
    };
    let here = seen((0..=10).map(|_| at("10.0.0.2")).collect());
    assert_eq!(kinds(&here), ["net.neighbour"]);
    let cause = &here.findings[0].cause;
    assert!(cause.contains("one of network namespace n1") && !cause.contains("VLAN"), "{cause}");
    let elsewhere = seen((0..=10).map(|_| at("10.0.0.3")).collect());
    assert!(elsewhere.findings[0].cause.contains("VLAN"), "{elsewhere:#?}");
}
