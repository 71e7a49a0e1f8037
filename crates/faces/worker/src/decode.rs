//! Packets as tshark decodes them: a child without rights, which this process hands them to.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use questions::{Answered, DecodeWanted, Refused, Why};
use serde_json::json;

use super::Work;

/// A line of each of 10 000 packets takes a tenth of this, and all fields of one mostly less.
const TEXT_BYTES_MAX: usize = 32 << 20;
/// Names of hosts and ports are not looked up, and times are seconds since 1970.
const ALWAYS: [&str; 5] = ["-n", "-r", "-", "-t", "e"];
/// `column-register` of Wireshark: number, time, protocol, information.
const COLUMNS: &str =
    "gui.column.format:\"No.\",\"%m\",\"Time\",\"%t\",\"Protocol\",\"%p\",\"Info\",\"%i\"";

impl Work<'_> {
    /// A line of each packet (PSML), or all fields of one (PDML).
    pub(super) fn decode(
        &self,
        wanted: &DecodeWanted,
        mut data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let (section, answered) = self.section(&wanted.packets)?;
        let one = wanted.number.map(|number| format!("frame.number=={number}"));
        let form = match &one {
            Some(one) => ["-T", "pdml", "-Y", one],
            None => ["-T", "psml", "-o", COLUMNS],
        };
        let arguments = [&ALWAYS[..], &form].concat();
        let xml = if answered.count == 0 {
            Vec::new()
        } else {
            let decoded = sandbox::decode(&wanted.program, &arguments, &section, TEXT_BYTES_MAX);
            decoded.map_err(|error| Refused {
                why: Why::Undecoded,
                ..Refused::because(&page::safe::with_causes(&error))
            })?
        };
        let member = json!({ "xml": String::from_utf8_lossy(&xml) }).to_string();
        let member = member.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        data.write_all(member.unwrap_or_default().as_bytes()).unwrap_or_default();
        Ok(answered)
    }
}
