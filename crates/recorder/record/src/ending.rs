//! What goes on when the last packet was taken, until nothing more is to be written.

use stage::Joining;

use crate::common::Common;
use crate::error::Error;
use crate::indexing::{self, Indexed};
use crate::patrol::PatrolThread;
use crate::report::Report;
use crate::spares::SparesEnd;
use crate::status::IndexerReport;
use crate::writing::RingThread;

/// The threads that end by themselves.
pub(crate) struct Threads<'scope> {
    pub(crate) ring: RingThread<'scope>,
    pub(crate) patrol: Option<PatrolThread<'scope>>,
    pub(crate) index: Joining<'scope, Indexed>,
    pub(crate) spares_end: SparesEnd,
}

impl Threads<'_> {
    /// Waits for them.
    pub(crate) fn end(self, common: &Common<'_>) -> Result<Report, Error> {
        let clock = common.clock;
        let scrubbed = self.patrol.map(PatrolThread::end).unwrap_or_default();
        let ended_ns = clock.boottime_ns();
        let indexed = self.index.join().expect("a panic aborts");
        drop(self.spares_end);
        let writer = self.ring.join().expect("a panic aborts")?;
        let closing_ns = clock.boottime_ns() - ended_ns;
        let mut report = Report { writer, closing_ns, ..Report::default() };
        let retire = |it| indexing::retire(it, common);
        report.take_index(indexed.and_then(retire));
        report.notes.extend(scrubbed.notes());
        Ok(report)
    }
}

impl Report {
    /// An index that failed costs no packet: what it does not cover is indexed when asked for.
    fn take_index(&mut self, indexed: Result<IndexerReport, index::Error>) {
        match indexed {
            Ok(index) => {
                (self.cpu, self.unreadable) = (index.cpu, index.unreadable);
                (self.rows, self.segments) = (index.rows, index.segments);
                (self.index_bytes, self.indexer_deaths) = (index.index_bytes, index.deaths);
                (self.unread, self.gave_way) = (index.unread, index.gave_way);
                self.notes.extend(index.notes);
            }
            Err(error) => self.notes.push(format!("indexing stopped: {error}; packets are stored")),
        }
    }
}
