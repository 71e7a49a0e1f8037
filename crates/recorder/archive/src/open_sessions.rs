//! Sessions that may go on, as an object of the store: the rows as a Parquet file of a segment, and
//! in front of it what no column of that has, as a line of JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use extract::OpenSessions;
use format::head::{StripeId, VolumeId};
use format::session_row::{SessionRow, SourceNames};
use index::{Columns, Segment, SegmentMeta};
use serde::{Deserialize, Serialize};
use units::{Epoch, Timestamp};

/// What stands in front of the rows.
#[derive(Serialize, Deserialize)]
struct Heading {
    version: u16,
    epoch: Epoch,
    /// Ids of the sessions, in the order of the rows.
    ids: Vec<String>,
    /// Names of interface and recording: by number for each row.
    sources: Vec<(Option<String>, Option<String>)>,
    source_of: Vec<Option<usize>>,
}

const VERSION: u16 = 1;

/// The object is damaged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Its rows are.
    #[error(transparent)]
    Rows(#[from] index::Error),
    /// What stands in front of them is.
    #[error("the sessions that were open are not as they were written")]
    Heading,
}

pub(crate) fn write(
    open: &OpenSessions,
    volume: VolumeId,
    last: StripeId,
) -> Result<Vec<u8>, OpenError> {
    let mut sessions: Vec<(&str, &SessionRow)> = open.iter().collect();
    // As a segment has its rows: by start.
    sessions.sort_by(|(id, row), (other_id, other)| (row.start, id).cmp(&(other.start, other_id)));
    let mut numbers: BTreeMap<&SourceNames, usize> = BTreeMap::new();
    let source_of: Vec<Option<usize>> = sessions
        .iter()
        .map(|(_, row)| {
            let next = numbers.len();
            row.source.as_deref().map(|source| *numbers.entry(source).or_insert(next))
        })
        .collect();
    let mut sources: Vec<(usize, &SourceNames)> =
        numbers.into_iter().map(|(source, number)| (number, source)).collect();
    sources.sort_unstable();
    let names = |source: &SourceNames| (source.interface.clone(), source.recording.clone());
    let heading = Heading {
        version: VERSION,
        epoch: open.epoch(),
        ids: sessions.iter().map(|(id, _)| (*id).to_owned()).collect(),
        sources: sources.into_iter().map(|(_, source)| names(source)).collect(),
        source_of,
    };
    let meta = SegmentMeta::new(volume, open.epoch(), last, last);
    let rows: Vec<SessionRow> = sessions.into_iter().map(|(_, row)| row.clone()).collect();
    let mut bytes = page::safe::json_line(&heading).into_bytes();
    bytes.extend(index::encode(&meta, &rows)?.parquet);
    Ok(bytes)
}

pub(crate) fn read(bytes: &[u8]) -> Result<OpenSessions, OpenError> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or(OpenError::Heading)?;
    let (heading, rest) = bytes.split_at_checked(end + 1).ok_or(OpenError::Heading)?;
    let heading: Heading = serde_json::from_slice(heading).map_err(|_| OpenError::Heading)?;
    if heading.version != VERSION {
        return Err(OpenError::Heading);
    }
    let sources = heading.sources.into_iter();
    let sources: Vec<Arc<SourceNames>> = sources
        .map(|(interface, recording)| Arc::new(SourceNames { interface, recording }))
        .collect();
    let mut rows = Vec::new();
    let segment = Segment::open(Bytes::copy_from_slice(rest))?;
    segment.rows(Columns::All, &(Timestamp::MIN..=Timestamp::MAX), &mut |_, row| {
        rows.push(row);
        core::ops::ControlFlow::Continue(())
    })?;
    if rows.len() != heading.ids.len() || rows.len() != heading.source_of.len() {
        return Err(OpenError::Heading);
    }
    for (row, number) in rows.iter_mut().zip(heading.source_of) {
        row.source = number.and_then(|number| sources.get(number)).cloned();
    }
    Ok(OpenSessions::restore(heading.epoch, heading.ids.into_iter().zip(rows)))
}
