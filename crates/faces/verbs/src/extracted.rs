//! Packets of a volume as a source: an extract at the other end of a pipe.

use std::io;
use std::thread::{self, JoinHandle};

use ::extract::Request;
use ::packet_output::Target;
use capture::{FileOptions, FileSource};
use host::{StopFlag, SystemClock};
use query::Query;

use crate::failure::of_extract;

/// The packets that an extract hands out.
#[derive(Clone, Debug)]
pub struct Extracted {
    /// The volume.
    pub options: ::extract::Options,
    /// What is asked for.
    pub query: Query,
    /// The same as it was given.
    pub query_text: String,
    /// Not those that are there, but those that a recorder adds from now on.
    pub is_followed: bool,
    /// Ends it early.
    pub stop: StopFlag,
}

/// An extract that runs, and in the end what is missing from it.
pub type Extract = JoinHandle<anyhow::Result<Option<String>>>;

impl Extracted {
    /// Begins to extract; a source that is dropped is an orderly end.
    pub fn start(self) -> Result<(FileSource, Extract), capture::Error> {
        let path = self.options.volume.clone();
        let failed = |source| capture::Error::Read { path: path.clone(), source };
        let (end, writer) = host::pipe().map_err(|error| failed(io::Error::other(error)))?;
        let thread = thread::Builder::new().name("extract".to_owned());
        let thread = thread.spawn(move || self.extract(writer)).map_err(failed)?;
        // Opened anew; our own end goes, so that the extract hears when that one is closed.
        Ok((FileSource::open(&end.path(), FileOptions::default())?, thread))
    }

    /// Writes the packets into a pipe; gives what is missing from them. A reader that goes away is
    /// an orderly end.
    fn extract(&self, mut to: io::PipeWriter) -> anyhow::Result<Option<String>> {
        let Self { options, query, query_text, is_followed, stop } = self;
        let request = Request::new(query, query_text);
        let target = Target::Pcapng(&mut to);
        let failed = |error| of_extract(&options.volume, error);
        if *is_followed {
            let go_on = &mut || stop.flow();
            let missing = ::extract::follow(options, &request, target, &SystemClock, go_on);
            let missing = missing.map_err(failed)?;
            return Ok((!missing.is_complete()).then(|| missing.to_string()));
        }
        let go_on = &mut |_: &::extract::Progress| stop.flow();
        let report = ::extract::extract(options, &request, target, &SystemClock, go_on);
        let report = report.map_err(failed)?;
        let completeness = report.manifest.completeness;
        let is_whole = completeness.is_complete() || report.reader_gone;
        Ok((!is_whole).then(|| completeness.to_string()))
    }
}
