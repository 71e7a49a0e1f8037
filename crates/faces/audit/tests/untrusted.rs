//! What the fuzz target of audits starts from (`fuzz/seeds`), whole, cut everywhere and with bytes
//! changed: what is wrong is named, and nothing leaves its line.

#[path = "../../../../fuzz/src/audit_lines.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod audit_lines;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn whatever_an_audit_says_reading_it_ends_and_what_it_says_stays_in_its_lines() {
    replay::replay("audit_lines", audit_lines::check);
}

#[test]
fn the_inputs_are_what_their_names_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/seeds/audit_lines/");
    let verified = |name: &str| {
        let read = std::fs::read(format!("{folder}{name}"));
        audit::verify_lines(&read.expect("it is in the repository"))
    };
    let found = |name: &str| (verified(name).faults_count, verified(name).torn);
    assert_eq!(found("whole"), (0, 0));
    assert_eq!(found("torn"), (0, 1));
    assert_eq!(found("edited"), (1, 0));
    assert_eq!(found("continued"), (1, 0));
}
