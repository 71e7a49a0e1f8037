//! The audit of a service, which anybody may have changed: reading it ends with what is wrong, and
//! what it says stays in its lines.

use audit::{Line, Shown, shown_line, verify_lines};

/// How many lines there are.
///
/// # Panics
/// Reading does, or a line does not come back as it is written, or is shown as several.
pub fn check(input: &[u8]) -> usize {
    let verified = verify_lines(input);
    for text in input.split(|byte| *byte == b'\n') {
        let Some(line) = Line::read(text) else { continue };
        let written = line.to_text();
        assert_eq!(Line::read(written.as_bytes()).as_ref(), Some(&line), "{written}");
        let shown = shown_line(&Shown::Line(&line));
        for text in [written, shown] {
            assert_eq!(text.find('\n'), Some(text.len() - 1), "{text:?} is a line");
            assert!(!text.contains('\u{1b}'), "{text:?} steers no terminal");
        }
    }
    usize::try_from(verified.lines).expect("lines in memory")
}
