//! Packets, as a file and as lines of JSON.

use core::time::Duration;
use std::io::{BufWriter, Write as _};
use std::os::unix::net::UnixStream;

use completeness::Completeness;
use extract::{ExtractReport, Pattern, Request};
use filters::PacketFilter;
use host::SystemClock;
use manifest::Limits;
use packet_output::Target;
use page::safe::printable;
use query::Query;
use questions::{Answered, ExtractWanted, Form, Hashes, Narrowed, PacketsWanted, Refused, Why};

use super::rest::Rest;
use super::{Work, parse, refused, statement};

/// A longer manifest is not kept: it lists each piece that was read.
const MANIFEST_BYTES_MAX: usize = 8 << 20;
const PACKETS_BYTES: usize = 256 << 10;
/// Packets that are shown are held as pcapng first, so many bytes of them.
const SHOWN_BYTES_MAX: u64 = 32 << 20;
const LATE: &str = "the time of a request is over before the place where the extract goes on";
const NOT_THE_SAME: &str = "the extract does not begin with these bytes any more: the ring has \
                            overwritten packets of it, or its times have got further ones";

impl Work<'_> {
    pub(super) fn extract(
        &self,
        wanted: &ExtractWanted,
        data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let query = parse(&wanted.query, wanted.now_ns)?;
        let request = request(wanted, &query)?;
        let mut out = BufWriter::with_capacity(PACKETS_BYTES, data);
        let mut out = Rest::new(wanted.behind.as_ref(), &mut out);
        let target = match wanted.form {
            Form::Pcapng => Target::Pcapng(&mut out),
            Form::Pcap => Target::Pcap(&mut out),
        };
        let taken = self.take(&request, target);
        if out.is_other() {
            return Err(Refused { why: Why::MovedOn, ..Refused::because(&NOT_THE_SAME) });
        }
        let (mut report, notes) = taken?;
        report.manifest.asked.approved.clone_from(&wanted.approved);
        if !out.is_behind() {
            let is_late = report.manifest.completeness.stopped;
            let (why, detail) =
                if is_late { (Why::Unreadable, LATE) } else { (Why::MovedOn, NOT_THE_SAME) };
            return Err(Refused { why, ..Refused::because(&detail) });
        }
        out.flush().unwrap_or_default();
        let maker = (self.recorders.maker)();
        let text = session_view::manifest_json(&report.manifest, maker, &[], None);
        let manifest = (text.len() <= MANIFEST_BYTES_MAX).then_some(text);
        let hashes = hashes(&report);
        let mut answered = Answered { manifest, hashes, ..answered(&report, notes) };
        if report.packets == 0 {
            answered.statement.hint = self.hint(&query, &report.met);
        }
        Ok(answered)
    }

    /// Packets with what their headers say, as lines.
    pub(super) fn packets(
        &self,
        wanted: &PacketsWanted,
        mut data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let (section, answered) = self.section(wanted)?;
        for line in session_view::packet_lines(&section) {
            // Where nobody reads there is nobody to be told.
            if data.write_all(line.as_bytes()).is_err() {
                break;
            }
        }
        Ok(answered)
    }

    /// Packets that are shown, as pcapng; nothing where there are none.
    pub(super) fn section(&self, wanted: &PacketsWanted) -> Result<(Vec<u8>, Answered), Refused> {
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
        Ok((section, answered(&report, notes)))
    }

    fn take(
        &self,
        request: &Request<'_>,
        target: Target<'_>,
    ) -> Result<(ExtractReport, Vec<String>), Refused> {
        let go_on = &mut |_: &extract::Progress| self.flow();
        let (options, notes) = self.options()?;
        let report = extract::extract(&options, request, target, &SystemClock, go_on);
        let mut report = report.map_err(|error| refused(&error))?;
        // The manifest says the same as the statement.
        report.manifest.completeness = self.visible(&report.manifest.completeness);
        Ok((report, notes))
    }
}

/// What `extract` is asked for. A filter of packets and a pattern are read here: what reading them
/// costs ends with this process.
fn request<'a>(wanted: &'a ExtractWanted, query: &'a Query) -> Result<Request<'a>, Refused> {
    let wrong =
        |error: &dyn ToString| Refused { why: Why::Wrong, detail: printable(&error.to_string()) };
    let Narrowed { whole_sessions, sessions_max, around_ms, packet_filter, payload, comments } =
        &wanted.narrowed;
    let packet_filter = packet_filter.as_deref().map(PacketFilter::of_addresses).transpose();
    let payload = payload.as_deref().map(str::parse::<Pattern>).transpose();
    Ok(Request {
        whole_sessions: *whole_sessions,
        around: around_ms.map(Duration::from_millis),
        packet_filter: packet_filter.map_err(|error| wrong(&error))?,
        payload: payload.map_err(|error| wrong(&error))?,
        limits: Limits {
            packets: wanted.packets_max,
            bytes: wanted.bytes_max,
            sessions: *sessions_max,
        },
        comments: *comments,
        case: wanted.case.clone(),
        ..Request::new(query, &wanted.query)
    })
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
    let of = session_view::counted(report.packets, report.manifest.rows);
    Answered {
        count: report.packets,
        next: None,
        statement: statement(&of, completeness, (cut_by(completeness), notes)),
        manifest: None,
        hashes: None,
    }
}
