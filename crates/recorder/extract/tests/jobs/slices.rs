//! The sessions of captures are the same however often their rows are cut: each second, each
//! minute, never. And so is the answer to what analysts ask of them.

use std::collections::BTreeSet;

use completeness::Completeness;
use extract::Sought;
use found::Found;
use query::{FIELDS, Query, Reading};
use session::{Config, SessionRow};
use testdata::Corpus;
use units::NANOS_PER_SECOND;
use wire::Address;

use crate::recorder::{How, Traffic, Volume, lacks_nothing, traffic_of};
use crate::whole::{found, shown, sought};

/// As `record --slice` takes them; `None` is off.
const SLICES_S: [Option<i64>; 3] = [Some(1), Some(60), None];

fn volume(traffic: &Traffic, seconds: Option<i64>) -> Volume {
    let slice_ns = seconds.map(|it| it * NANOS_PER_SECOND);
    let config = Config { slice_ns, ..Config::default() };
    // The longest packets of the corpus have 64 KiB. Cut rows lie in several segments, too.
    let segment_pieces = Some(if seconds.is_some() { 3 } else { usize::MAX });
    let how = How { piece_bytes: 128 << 10, segment_pieces, config, ..How::default() };
    Volume::of(traffic, how)
}

/// Questions whose bounds lie in the middle of what there is.
fn questions(all: &[Found]) -> BTreeSet<String> {
    let mut questions = BTreeSet::new();
    let mut middle = |name: &str, value: &dyn Fn(&Found) -> i64, unit: &str| {
        let mut values: Vec<i64> = all.iter().map(value).collect();
        values.sort_unstable();
        if let Some(middle) = values.get(values.len() / 2) {
            questions.insert(format!("{name} > {middle}{unit}"));
            questions.insert(format!("{name} <= {middle}{unit}"));
        }
    };
    let count = |packets: u64| i64::try_from(packets).unwrap();
    middle("packets", &|it| count(it.session.orig.packets + it.session.resp.packets), "");
    middle("bytes", &|it| count(it.session.orig.frame_bytes + it.session.resp.frame_bytes), "");
    middle("resp_bytes", &|it| count(it.session.resp.frame_bytes), "");
    middle("duration", &|it| it.session.end.since(it.session.start), "ns");
    for found in all.iter().step_by(1 + all.len() / 3) {
        let session = &found.session;
        let middle = session.start.plus_nanos(session.end.since(session.start) / 2);
        questions.insert(format!("after {middle}"));
        questions.insert(format!("before {middle} and duration > 1s"));
        questions.insert(format!(
            "start >= {} and state = {}",
            session.start,
            session.state.name()
        ));
        if matches!(session.tuple.orig, Address::V4(_) | Address::V6(_)) {
            questions.insert(format!("host {} and packets > 3", session.tuple.orig));
        }
        questions.insert(format!("resp_port = {} or app dns", session.tuple.resp_port));
        // Filters know every value of these.
        for field in FIELDS.iter().filter(|field| index::knows_values_of(field.name)) {
            let mut ask = |value: Reading<'_>| {
                questions.insert(field.condition(value));
            };
            field.each((session, &[]), None, &mut ask);
        }
        if let Some(app) = &session.app {
            questions.insert(format!("not (app {})", app.app.name()));
        }
    }
    questions
}

fn shown_of(volume: &Volume, text: &str) -> Vec<impl PartialEq + core::fmt::Debug + use<>> {
    found(volume, text).iter().map(shown).collect()
}

#[test]
fn captures_give_the_same_answers_however_their_rows_are_cut() {
    // A part of the large corpus.
    for corpus in &Corpus::all() {
        check(corpus, if corpus.is_large { 12 } else { 1 });
    }
}

#[test]
#[ignore = "takes three minutes: all captures of the large corpus"]
fn all_captures_give_the_same_answers_however_their_rows_are_cut() {
    for corpus in &Corpus::all() {
        check(corpus, 1);
    }
}

/// Each capture in so many.
fn check(corpus: &Corpus, step: usize) {
    let (mut captures, mut sessions, mut asked) = (0, 0, 0);
    for path in corpus.captures().into_iter().step_by(step) {
        let traffic = traffic_of(&path);
        let [second, minute, off] = SLICES_S.map(|seconds| volume(&traffic, seconds));
        let all = found(&off, "");
        for text in questions(&all).iter().map(String::as_str).chain([""]) {
            let expected = shown_of(&off, text);
            for (name, volume) in [("1 s", &second), ("60 s", &minute)] {
                let shown = shown_of(volume, text);
                let differ = shown.iter().zip(&expected).find(|(cut, whole)| cut != whole);
                let counts = (shown.len(), expected.len());
                let what = format!("{}, {name}, {counts:?}: {text}", path.display());
                assert!(shown == expected, "{what}: {differ:#?}");
            }
            asked += 1;
        }
        (captures, sessions) = (captures + 1, sessions + all.len());
    }
    println!("{captures} captures, {sessions} sessions, {asked} questions: no difference");
    assert!(
        captures > 25 && sessions > 100 && asked > 10 * captures,
        "{captures} {sessions} {asked}"
    );
}

/// Every third piece has no rows: the sessions that begin where there are some are whole all the
/// same. Not so where a session seems to be silent for too long without the packets of those
/// pieces, and fragments are taken together only where they are near to each other.
#[test]
fn sessions_of_captures_are_whole_where_pieces_have_no_rows() {
    let config = Config { slice_ns: Some(20 * NANOS_PER_SECOND), ..Config::default() };
    let (piece_bytes, segment_pieces) = (16 << 10, Some(4));
    let how = How { piece_bytes, segment_pieces, config, ..How::default() };
    let mut compared = 0;
    for corpus in &Corpus::all() {
        for path in corpus.captures().into_iter().step_by(if corpus.is_large { 4 } else { 1 }) {
            let traffic = traffic_of(&path);
            if traffic.packets.iter().map(|packet| packet.data.len()).sum::<usize>() < 32 << 10 {
                continue;
            }
            let (whole, late) =
                (Volume::of(&traffic, how), Volume::of(&traffic, How { late: true, ..how }));
            let seen = |found: &Found| {
                let SessionRow { tuple, start, end, orig, resp, .. } = &found.session;
                let counts = [orig, resp].map(|it| (it.packets, it.frame_bytes, it.payload_bytes));
                (*tuple, *start, *end, counts)
            };
            // Those that begin where none are and go on behind are two, which is said.
            let (of_late, completeness) = sought(&late, &Sought::new(&Query::all()));
            assert!(lacks_nothing(&Completeness { split_sessions: 0, ..completeness }));
            let mut of_late: Vec<_> = of_late.iter().map(seen).collect();
            let has_rows = |found: &&Found| {
                let SessionRow { pieces, fragments, start, end, .. } = &found.session;
                let begins = pieces.first().unwrap().piece.sequence;
                let is_short = end.since(*start) < config.udp_timeout_ns.unwrap();
                is_short && *fragments == 0 && !late.without_rows.contains(&begins)
            };
            for found in found(&whole, "").iter().filter(has_rows) {
                let at = of_late.iter().position(|other| *other == seen(found));
                assert!(at.is_some(), "{}: {found:#?}", path.display());
                of_late.swap_remove(at.unwrap());
                compared += 1;
            }
        }
    }
    println!("{compared} sessions");
    assert!(compared > 500, "{compared}");
}
