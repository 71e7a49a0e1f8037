use std::thread;

use super::*;
use crate::kept::OverBy;
use crate::party::PartyKind;

const HOUR_NS: i64 = 3600 * NANOS_PER_SECOND;

fn token(name: &str) -> Party {
    Party { kind: PartyKind::Token, name: name.to_owned(), mark: format!("mark of {name}") }
}

fn asked(by: &str, number: i64) -> Asked {
    Asked {
        made_ns: number,
        until_ns: HOUR_NS,
        requester: token(by),
        query: "port 53".to_owned(),
        filter: None,
        volume_id: "v".to_owned(),
        only_range: false,
        case: "17".to_owned(),
        purpose: "a leak".to_owned(),
        nonce: number.to_string(),
    }
}

fn everything(_: &Kept) -> bool {
    true
}

fn all(requests: &Requests, now_ns: i64) -> Vec<Kept> {
    let wanted = Wanted { state: None, limit: REQUESTS_MAX };
    requests.list(wanted, Timestamp(now_ns), &everything).requests
}

fn approve(requests: &Requests, id: &str, by: &str, now_ns: i64) -> Result<Kept, Error> {
    requests.approve((id, &everything), (&token(by), None), Timestamp(now_ns))
}

fn end(requests: &Requests, id: &str, by: &str, at_ns: i64) -> Result<Kept, Error> {
    let how = if by == "anna" { OverBy::Withdrawn } else { OverBy::Refused };
    requests.end((id, &everything), &Over { at_ns, by: token(by), how, note: None })
}

/// The reason, which is none of a file.
#[track_caller]
fn refused(done: Result<Kept, Error>) -> Refused {
    match done {
        Err(Error::Refused(refused)) => refused,
        other => panic!("{other:?}"),
    }
}

fn empty() -> (tempfile::TempDir, Requests) {
    let folder = tempfile::tempdir().unwrap();
    let requests = Requests::open(&folder.path().join("requests")).unwrap();
    (folder, requests)
}

#[test]
fn somebody_else_approves_once_and_in_time() {
    let (_folder, requests) = empty();
    let kept = requests.add(&asked("anna", 1), Timestamp(1)).unwrap();
    assert_eq!(kept.is_approved(Timestamp(2)), Err(Refused::NotApproved));
    assert_eq!(kept.named(), None);
    assert_eq!(refused(approve(&requests, &kept.id, "anna", 2)), Refused::OnePerson);
    assert_eq!(refused(approve(&requests, &kept.id, "Anna", 2)), Refused::OnePerson);
    assert!(matches!(approve(&requests, "other", "bert", 2), Err(Error::Unknown)));
    let until = Timestamp(HOUR_NS);
    assert_eq!(refused(approve(&requests, &kept.id, "bert", HOUR_NS)), Refused::Expired(until));
    let approved = approve(&requests, &kept.id, "bert", HOUR_NS - 1).unwrap();
    let named = approved.named().unwrap();
    assert_eq!(named.request_blake3, kept.asked.id());
    assert_eq!((&*named.requested_by, &*named.approved_by), ("anna (token)", "bert (token)"));
    assert_eq!(refused(approve(&requests, &kept.id, "carl", 2)), Refused::Twice);
    assert!(approved.is_approved(Timestamp(HOUR_NS - 1)).is_ok());
    assert_eq!(approved.is_approved(until), Err(Refused::Expired(until)));
    // As a service that begins anew reads it.
    let again = Requests::open(&requests.path).unwrap();
    assert_eq!(all(&again, 2), [approved]);
}

#[test]
fn what_was_withdrawn_or_refused_stays_so() {
    let (_folder, requests) = empty();
    for (number, (by, state)) in
        (1..).zip([("anna", State::Withdrawn), ("bert", State::Refused), ("carl", State::Refused)])
    {
        let kept = requests.add(&asked("anna", number), Timestamp(1)).unwrap();
        if by == "carl" {
            approve(&requests, &kept.id, "bert", 2).unwrap();
        }
        let over = end(&requests, &kept.id, by, 3).unwrap();
        assert_eq!(over.state(Timestamp(i64::MAX)), state);
        assert_eq!(over.is_approved(Timestamp(4)), Err(Refused::Over(state)));
        assert_eq!(refused(approve(&requests, &kept.id, "dora", 4)), Refused::Over(state));
        assert_eq!(refused(end(&requests, &kept.id, by, 4)), Refused::Over(state));
    }
    let of = |state| {
        let wanted = Wanted { state: Some(state), limit: 9 };
        requests.list(wanted, Timestamp(4), &everything).count
    };
    assert_eq!((of(State::Withdrawn), of(State::Refused), of(State::Waiting)), (1, 2, 0));
}

#[test]
fn each_change_in_the_file_is_noticed() {
    let (_folder, requests) = empty();
    let kept = requests.add(&asked("anna", 1), Timestamp(1)).unwrap();
    approve(&requests, &kept.id, "bert", 2).unwrap();
    let other = requests.add(&asked("anna", 2), Timestamp(1)).unwrap();
    let text = std::fs::read_to_string(&requests.path).unwrap();
    let until = format!("\"until_ns\":{HOUR_NS}");
    for (from, to) in [
        ("port 53", "port 54"),
        ("\"case\":\"17\"", "\"case\":\"18\""),
        ("a leak", "a leek"),
        (&*until, "\"until_ns\":7"),
        ("\"volume_id\":\"v\"", "\"volume_id\":\"w\""),
        ("\"only_range\":false", "\"only_range\":true"),
        ("\"made_ns\":1,", "\"made_ns\":1,\"filter\":\"tcp\","),
        // Who asked, and who approved.
        ("\"anna\"", "\"dora\""),
        ("\"bert\"", "\"anna\""),
        ("\"mark of bert\"", "\"mark of anna\""),
        // An approval of another request.
        (&*format!("\"request\":\"{}\"", kept.id), &*format!("\"request\":\"{}\"", other.id)),
        (&*format!("\"id\":\"{}\"", kept.id), &*format!("\"id\":\"{}\"", other.id)),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        std::fs::write(&requests.path, &changed).unwrap();
        let opened = Requests::open(&requests.path);
        assert!(matches!(opened, Err(Error::Changed { line: 1, .. })), "{from} {opened:?}");
        assert!(approve(&requests, &other.id, "bert", 3).is_err(), "nothing is written over it");
    }
    std::fs::write(&requests.path, format!("{text}{{}}\n")).unwrap();
    assert!(matches!(Requests::open(&requests.path), Err(Error::Line { line: 3, .. })));
}

#[test]
fn of_many_at_once_one_approves_or_ends_it() {
    let (_folder, requests) = empty();
    for round in 0..20 {
        let kept = requests.add(&asked("anna", round), Timestamp(1)).unwrap();
        let done: Vec<(bool, bool)> = thread::scope(|scope| {
            let names = ["bert", "carl", "dora", "emil"];
            let one = |name| (approve(&requests, &kept.id, name, 2).is_ok(), false);
            let other = || (false, end(&requests, &kept.id, "anna", 2).is_ok());
            let mut all: Vec<_> =
                names.into_iter().map(|name| scope.spawn(move || one(name))).collect();
            all.extend([scope.spawn(other), scope.spawn(other)]);
            all.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let approved = done.iter().filter(|(approved, _)| *approved).count();
        let ended = done.iter().filter(|(_, ended)| *ended).count();
        assert!(approved <= 1 && ended == 1, "{done:?}");
        let now = requests.find(&kept.id, &everything).unwrap();
        assert_eq!(now.state(Timestamp(3)), State::Withdrawn);
        assert_eq!(now.approval.is_some(), approved == 1);
    }
}

#[test]
fn room_is_made_by_what_is_over_and_left_to_others() {
    let (_folder, requests) = empty();
    for number in 0..100 {
        requests.add(&asked("anna", number), Timestamp(1)).unwrap();
    }
    let more = asked("anna", 100);
    assert!(matches!(requests.add(&more, Timestamp(2)), Err(Error::TooMany)));
    requests.add(&asked("bert", 100), Timestamp(2)).unwrap();
    // When those are over, there is room, and much later they are gone.
    let later = asked("anna", HOUR_NS);
    let later = Asked { until_ns: HOUR_NS + KEPT_NS + 7, ..later };
    requests.add(&later, Timestamp(HOUR_NS)).unwrap();
    assert_eq!(all(&requests, HOUR_NS).len(), 102);
    approve(&requests, &later.id(), "bert", HOUR_NS + KEPT_NS).unwrap();
    assert_eq!(all(&requests, HOUR_NS).len(), 1);
    let open = Kept::new(later.clone());
    let over = Kept::new(asked("bert", 7));
    let mut many = vec![open.clone(); REQUESTS_MAX];
    assert!(fitted(&mut many, Timestamp(HOUR_NS)).is_ok());
    many.push(open);
    assert!(matches!(fitted(&mut many, Timestamp(HOUR_NS)), Err(Error::Full)));
    many.insert(5, over);
    many.pop();
    assert!(fitted(&mut many, Timestamp(HOUR_NS)).unwrap().lines().count() == REQUESTS_MAX);
}
