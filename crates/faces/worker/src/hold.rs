//! Packets that are put aside, by the same rules as `wirespool hold`.

use core::cell::RefCell;
#[cfg(test)]
use std::io::ErrorKind::PermissionDenied;
use std::io::ErrorKind::{QuotaExceeded, StorageFull};
use std::io::Write as _;
use std::os::unix::net::UnixStream;

use extract::{ExtractReport, Progress, Request};
use hold::{Aside, Room, no_signature, put_aside};
use manifest::Limits;
use page::text::plural;
use questions::{Answered, HoldWanted, Refused, Why};
use serde_json::{Value, json};
use units::ByteSize;

use super::packets::{cut_by, hashes};
use super::{Work, parse, refused};

impl Work<'_> {
    pub(super) fn hold(
        &self,
        wanted: &HoldWanted,
        mut data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let (held, answered) = self.put_aside(wanted, &mut |_| {})?;
        let held = page::safe::json_part(&held);
        data.write_all(format!("\"hold\":{held}").as_bytes()).unwrap_or_default();
        Ok(answered)
    }

    /// Puts packets aside; what is held, and what is missing from it.
    pub(super) fn put_aside(
        &self,
        wanted: &HoldWanted,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<(Value, Answered), Refused> {
        let query = parse(&wanted.query, wanted.now_ns)?;
        let limits = Limits { packets: None, bytes: Some(wanted.bytes_max), sessions: None };
        let whole_sessions = !wanted.only_range;
        let request = Request { limits, whole_sessions, ..Request::new(&query, &wanted.query) };
        let (options, notes) = self.options()?;
        let kept = RefCell::new(None);
        let manifest = |report: &ExtractReport, files: &[String]| {
            *kept.borrow_mut() = hashes(report);
            let mut said = report.manifest.clone();
            said.asked.filter.clone_from(&wanted.filter);
            session_view::manifest_json(&said, (self.recorders.maker)(), files, None)
        };
        let (folder, size_max) = (&*wanted.folder, wanted.size_max);
        let room = Room {
            folder,
            size_max,
            also_empty: true,
            manifest: &manifest,
            signature: &no_signature,
        };
        let aside = put_aside(&room, &options, &request, &mut |progress| {
            tell(progress);
            self.flow()
        });
        match aside.map_err(|error| failed(&error))? {
            Aside::Held { path, packets, completeness, .. } => {
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let cut_by = cut_by(&completeness);
                let of = plural(packets, "packet");
                let answered = Answered {
                    count: packets,
                    next: None,
                    statement: self.statement(&of, &completeness, (cut_by, notes)),
                    manifest: None,
                    hashes: kept.into_inner(),
                };
                Ok((json!({ "file": file, "packets": packets }), answered))
            }
            Aside::Full { used } => {
                let (used, most) = (ByteSize(used), ByteSize(size_max));
                let detail = format!("the holds have {used} of {most}: remove some");
                Err(Refused { why: Why::Full, ..Refused::because(&detail) })
            }
            // An empty hold is kept, too.
            Aside::Nothing | Aside::Stopped => Err(Refused::because(&"nothing was put aside")),
        }
    }
}

/// What is wrong with the folder is not said of the volume.
fn failed(error: &hold::Error) -> Refused {
    let why = match error {
        hold::Error::Extract(extract::Error::Output(packet_output::Error::Write(error)))
        | hold::Error::Write(error) => {
            let is_full = matches!(error.kind(), StorageFull | QuotaExceeded);
            if is_full { Why::Full } else { Why::Unkept }
        }
        hold::Error::Extract(error) => return refused(error),
        _ => Why::Unkept,
    };
    Refused { why, ..Refused::because(&page::safe::with_causes(error)) }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn what_is_wrong_with_the_folder_is_not_said_of_the_volume() {
        let written = |kind| packet_output::Error::Write(Error::from(kind));
        let output = |kind| hold::Error::Extract(extract::Error::Output(written(kind)));
        assert_eq!(failed(&output(StorageFull)).why, Why::Full);
        assert_eq!(failed(&hold::Error::Write(Error::from(QuotaExceeded))).why, Why::Full);
        assert_eq!(failed(&output(PermissionDenied)).why, Why::Unkept);
        let of_volume = extract::Error::Indexer("it ended".to_owned());
        assert_eq!(failed(&hold::Error::Extract(of_volume)).why, Why::Unreadable);
    }
}
