//! Names of interfaces and recordings that a run met: what an answer that knows none of the names
//! asked for says instead.

use std::collections::BTreeSet;

use completeness::Completeness;
use format::session_row::SessionRow;
use index::SegmentMeta;

/// Names kept of each kind: as many as a line of text can say.
const NAMES_MAX: usize = 64;

/// Names of interfaces and recordings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NamesMet {
    /// Names of interfaces.
    pub interfaces: BTreeSet<String>,
    /// Names of recordings.
    pub recordings: BTreeSet<String>,
}

impl NamesMet {
    /// Those of a segment.
    pub(crate) fn add_segment(&mut self, meta: &SegmentMeta) {
        put(&mut self.interfaces, meta.interfaces.iter().map(|interface| &interface.name));
        put(&mut self.recordings, meta.recording.iter());
    }

    /// Those of rows that no index has.
    pub(crate) fn add_rows(&mut self, rows: &[SessionRow]) {
        for source in rows.iter().filter_map(|row| row.source.as_deref()) {
            put(&mut self.interfaces, source.interface.iter());
            put(&mut self.recordings, source.recording.iter());
        }
    }

    /// Those that another run met.
    pub(crate) fn add(&mut self, other: &Self) {
        put(&mut self.interfaces, other.interfaces.iter());
        put(&mut self.recordings, other.recordings.iter());
    }

    /// The same with the interfaces that heads name: segments that were not opened are not met.
    pub(crate) fn with_heads(mut self, completeness: &Completeness) -> Self {
        let names = completeness.recorded.iter().flat_map(|stretch| &stretch.interfaces);
        put(&mut self.interfaces, names);
        self
    }
}

fn put<'n>(known: &mut BTreeSet<String>, names: impl Iterator<Item = &'n String>) {
    for name in names {
        if !name.is_empty() && known.len() < NAMES_MAX && !known.contains(name) {
            known.insert(name.clone());
        }
    }
}
