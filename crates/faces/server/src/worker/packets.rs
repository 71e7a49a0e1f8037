//! Packets, as a file and as lines of JSON.

use std::io::{BufWriter, Write as _};
use std::os::unix::net::UnixStream;

use extract::{Completeness, ExtractReport, Limits, Request, Target};
use host::SystemClock;
use page::text::plural;

use super::{Work, parse, refused, statement};
use crate::question::{Answered, ExtractWanted, Form, Hashes, PacketsWanted, Refused};

/// A longer manifest is not kept: it lists each piece that was read.
const MANIFEST_BYTES_MAX: usize = 8 << 20;
const PACKETS_BYTES: usize = 256 << 10;
/// Packets that are shown are held as pcapng first, so many bytes of them.
const SHOWN_BYTES_MAX: u64 = 32 << 20;

impl Work<'_> {
    pub(super) fn extract(
        &self,
        wanted: &ExtractWanted,
        data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let query = parse(&wanted.query, wanted.now_ns)?;
        let limits =
            Limits { packets: wanted.packets_max, bytes: wanted.bytes_max, sessions: None };
        let whole_sessions = !wanted.only_range;
        let request = Request { limits, whole_sessions, ..Request::new(&query, &wanted.query) };
        let mut out = BufWriter::with_capacity(PACKETS_BYTES, data);
        let target = match wanted.form {
            Form::Pcapng => Target::Pcapng(&mut out),
            Form::Pcap => Target::Pcap(&mut out),
        };
        let (report, notes) = self.take(&request, target)?;
        out.flush().unwrap_or_default();
        let maker = (self.recorders.maker)();
        let text = session_view::manifest_json(&report.manifest, maker, &[], None);
        let manifest = (text.len() <= MANIFEST_BYTES_MAX).then_some(text);
        let hashes = hashes(&report);
        Ok(Answered { manifest, hashes, ..answered(&report, notes) })
    }

    /// Packets with what their headers say, as lines.
    pub(super) fn packets(
        &self,
        wanted: &PacketsWanted,
        mut data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let query = parse(&wanted.query, wanted.now_ns)?;
        let limits = Limits {
            packets: Some(wanted.packets_max),
            bytes: Some(SHOWN_BYTES_MAX),
            sessions: None,
        };
        let whole_sessions = !wanted.only_range;
        let request = Request { limits, whole_sessions, ..Request::new(&query, &wanted.query) };
        let mut section = Vec::new();
        let (report, notes) = self.take(&request, Target::Pcapng(&mut section))?;
        for line in session_view::packet_lines(&section) {
            // Where nobody reads there is nobody to be told.
            if data.write_all(line.as_bytes()).is_err() {
                break;
            }
        }
        Ok(answered(&report, notes))
    }

    fn take(
        &self,
        request: &Request<'_>,
        target: Target<'_>,
    ) -> Result<(ExtractReport, Vec<String>), Refused> {
        let go_on = &mut |_: &extract::Progress| self.flow();
        let (options, notes) = self.options()?;
        let report = extract::extract(&options, request, target, &SystemClock, go_on);
        Ok((report.map_err(|error| refused(&error))?, notes))
    }
}

/// Of the one output of an extract.
pub(super) fn hashes(report: &ExtractReport) -> Option<Hashes> {
    report.manifest.outputs.first().map(|output| Hashes {
        sha256: units::hex(&output.sha256),
        blake3: units::hex(&output.blake3),
    })
}

/// What cut packets off.
pub(super) fn cut_by(completeness: &Completeness) -> Option<&'static str> {
    match (completeness.stopped, completeness.limited) {
        (true, _) => Some("time"),
        (_, true) => Some("limit"),
        _ => None,
    }
}

fn answered(report: &ExtractReport, notes: Vec<String>) -> Answered {
    let completeness = &report.manifest.completeness;
    let packets = plural(report.packets, "packet");
    let of = format!("{packets} of {}", plural(report.manifest.rows, "session row"));
    Answered {
        count: report.packets,
        next: None,
        statement: statement(&of, completeness, (cut_by(completeness), notes)),
        manifest: None,
        hashes: None,
    }
}
