//! Names of interfaces and recordings that a run met: what an answer that knows none of the names
//! asked for says instead.

use std::collections::BTreeSet;

use format::slice::Slice;
use index::SegmentMeta;

use crate::completeness::Completeness;

/// Names kept of each kind: as many as a line of text can say.
const NAMES_MAX: usize = 64;

/// Names of interfaces and recordings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NamesMet {
    /// Of interfaces.
    pub interfaces: BTreeSet<String>,
    /// Of recordings.
    pub recordings: BTreeSet<String>,
}

impl NamesMet {
    /// Those of a segment.
    pub(crate) fn add_segment(&mut self, meta: &SegmentMeta) {
        for interface in &meta.interfaces {
            put(&mut self.interfaces, &interface.name);
        }
        meta.recording.iter().for_each(|name| put(&mut self.recordings, name));
    }

    /// Those of rows that no index has.
    pub(crate) fn add_rows(&mut self, rows: &[Slice]) {
        for source in rows.iter().filter_map(|row| row.source.as_deref()) {
            source.interface.iter().for_each(|name| put(&mut self.interfaces, name));
            source.recording.iter().for_each(|name| put(&mut self.recordings, name));
        }
    }

    /// Those that another run met.
    pub(crate) fn add(&mut self, other: &Self) {
        other.interfaces.iter().for_each(|name| put(&mut self.interfaces, name));
        other.recordings.iter().for_each(|name| put(&mut self.recordings, name));
    }

    /// The same with the interfaces that heads name: segments that nobody had to open are not met.
    pub(crate) fn with_heads(mut self, completeness: &Completeness) -> Self {
        let names = completeness.recorded.iter().flat_map(|stretch| &stretch.interfaces);
        names.for_each(|name| put(&mut self.interfaces, name));
        self
    }
}

fn put(names: &mut BTreeSet<String>, name: &str) {
    if !name.is_empty() && names.len() < NAMES_MAX && !names.contains(name) {
        names.insert(name.to_owned());
    }
}
