//! A witness file: a line for each anchor, kept where who writes the volume cannot change it. A
//! volume that was set back lacks what its newest line names.

use format::head::{StripeId, VolumeId};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Timestamp, unhex};

use crate::anchor::parse_stripe;

/// What every line begins with.
pub const WITNESS_BEGINS: &str = "{\"made_ns\":";

/// A line as JSON has it, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WitnessForm {
    /// When the anchor was made, ns since 1970.
    pub made_ns: i64,
    /// Of this volume, in hex digits.
    pub volume_id: String,
    /// Newest acknowledged stripe.
    pub newest: String,
    /// Its identity, in hex digits.
    pub newest_cid: String,
    /// SHA-256 of the anchor's text, in hex digits.
    pub anchor_sha256: String,
}

/// A line of a witness file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witnessed {
    /// When the anchor was made.
    pub made: Timestamp,
    /// Of this volume.
    pub volume: VolumeId,
    /// Newest acknowledged stripe.
    pub newest: StripeId,
    /// Its identity.
    pub newest_cid: [u8; 32],
    /// SHA-256 of the anchor's text.
    pub anchor_sha256: [u8; 32],
}

/// A file is no witness file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("line {line} is no line of a witness file")]
pub struct WitnessError {
    /// Its number, from 1.
    pub line: usize,
}

/// Reads a witness file.
///
/// # Errors
/// When a line is none. What is left of a line whose writer was interrupted has no end, and is left
/// out.
pub fn witness_lines(text: &str) -> Result<Vec<Witnessed>, WitnessError> {
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let read = |(line, text): (usize, &str)| parse_line(text).ok_or(WitnessError { line });
    let lines = (1..).zip(whole.lines());
    lines.filter(|(_, text)| !text.is_empty() && !is_torn(text)).map(read).collect()
}

/// What is left of a line, behind which others were written.
fn is_torn(text: &str) -> bool {
    let begins = text.starts_with(WITNESS_BEGINS) || WITNESS_BEGINS.starts_with(text);
    begins && !text.ends_with('}')
}

fn parse_line(text: &str) -> Option<Witnessed> {
    let form: WitnessForm = serde_json::from_str(text).ok()?;
    Some(Witnessed {
        made: Timestamp(form.made_ns),
        volume: VolumeId(unhex(&form.volume_id)?),
        newest: parse_stripe(&form.newest)?,
        newest_cid: unhex(&form.newest_cid)?,
        anchor_sha256: unhex(&form.anchor_sha256)?,
    })
}

#[cfg(test)]
mod tests {
    use units::Sequence;

    use super::*;

    #[test]
    fn lines_are_read_and_half_a_line_is_left_out() {
        let line = format!(
            "{{\"made_ns\":5,\"volume_id\":\"{}\",\"newest\":\"12.0\",\"newest_cid\":\"{}\",\
             \"anchor_sha256\":\"{}\"}}",
            "0a".repeat(16),
            "0b".repeat(32),
            "0c".repeat(32),
        );
        let lines = witness_lines(&format!("{line}\n\n{line}\n{}", &line[..40])).unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].made, lines[0].newest.sequence), (Timestamp(5), Sequence(12)));
        assert_eq!(lines[1].newest_cid, [0x0b; 32]);
        assert_eq!(witness_lines(""), Ok(Vec::new()));
        let torn = format!("{}\n{line}\n", &line[..40]);
        assert_eq!(witness_lines(&torn).unwrap().len(), 1);
        let broken = format!("{line}\nhello\n");
        assert_eq!(witness_lines(&broken), Err(WitnessError { line: 2 }));
    }
}
