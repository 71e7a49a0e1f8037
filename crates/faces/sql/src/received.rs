//! The answer of a query that another process has computed, out of a stream of Arrow's IPC format.
//!
//! The stream may be anybody's. So nothing is allocated for what it announces, only for what has
//! come, a part that is too large is refused, and rows are validated before anything reads them.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::ArrowError;

use crate::{Error, Event};

/// Rows come in batches: one takes so many bytes at most.
const BATCH_BYTES_MAX: usize = 256 << 20;

/// A stream that is being read.
#[derive(Debug, Default)]
pub struct Received {
    decoder: StreamDecoder,
    /// Came and not looked at.
    rest: Buffer,
    /// Came since the last event.
    pending_bytes: usize,
    has_columns: bool,
    /// Rows that came with the columns.
    rows: Option<RecordBatch>,
}

impl Received {
    /// Takes the next bytes.
    ///
    /// # Panics
    /// If there are events of earlier bytes that were not taken.
    pub fn push(&mut self, bytes: &[u8]) {
        assert!(self.rest.is_empty(), "what came before is read first");
        self.pending_bytes = self.pending_bytes.saturating_add(bytes.len());
        self.rest = Buffer::from(bytes);
    }

    /// The next event, if the bytes so far have one.
    ///
    /// # Errors
    /// When they are no such stream, or one of its parts is too large.
    pub fn event(&mut self) -> Result<Option<Event>, Error> {
        if let Some(rows) = self.rows.take() {
            return Ok(Some(Event::Rows(rows)));
        }
        if self.pending_bytes > BATCH_BYTES_MAX {
            let why = format!("a part of it has more than {BATCH_BYTES_MAX} bytes");
            return Err(Error::Received(ArrowError::IpcError(why)));
        }
        let rows = self.decoder.decode(&mut self.rest).map_err(Error::Received)?;
        if rows.is_some() {
            self.pending_bytes = self.rest.len();
        }
        if let Some(columns) = self.decoder.schema().filter(|_| !self.has_columns) {
            self.has_columns = true;
            self.rows = rows;
            return Ok(Some(Event::Columns(columns)));
        }
        Ok(rows.map(Event::Rows))
    }

    /// The end of the stream.
    ///
    /// # Errors
    /// When it is not there.
    pub fn finish(mut self) -> Result<(), Error> {
        if !self.has_columns {
            let why = "it has no columns".to_owned();
            return Err(Error::Received(ArrowError::IpcError(why)));
        }
        self.decoder.finish().map_err(Error::Received)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn sent() -> (RecordBatch, Vec<u8>) {
        let fields = [("n", DataType::Int64), ("text", DataType::Utf8)];
        let fields = fields.map(|(name, kind)| Field::new(name, kind, true));
        let columns = Arc::new(Schema::new(fields.to_vec()));
        let numbers = Int64Array::from(vec![Some(1), None, Some(i64::MIN)]);
        let texts = StringArray::from(vec![Some("a"), Some("\u{1b}"), None]);
        let rows =
            RecordBatch::try_new(Arc::clone(&columns), vec![Arc::new(numbers), Arc::new(texts)]);
        let rows = rows.unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &columns).unwrap();
        writer.write(&rows).unwrap();
        writer.write(&rows.slice(1, 1)).unwrap();
        (rows, writer.into_inner().unwrap())
    }

    fn received(bytes: &[u8], size: usize) -> Result<Vec<Event>, Error> {
        let (mut received, mut events) = (Received::default(), Vec::new());
        for part in bytes.chunks(size) {
            received.push(part);
            while let Some(event) = received.event()? {
                events.push(event);
            }
        }
        received.finish()?;
        Ok(events)
    }

    #[test]
    fn rows_come_as_they_were_sent_wherever_the_stream_is_cut() {
        let (rows, bytes) = sent();
        for size in 1..=bytes.len() {
            let events = received(&bytes, size).unwrap();
            let [Event::Columns(columns), Event::Rows(first), Event::Rows(second)] = &*events
            else {
                panic!("{size}: {events:?}")
            };
            assert_eq!((columns, first), (&rows.schema(), &rows), "{size}");
            assert_eq!(*second, rows.slice(1, 1));
        }
    }

    #[test]
    fn what_is_cut_off_announced_or_changed_is_no_answer() {
        let (_, bytes) = sent();
        // The end of the stream has 8 bytes. A stream that ends between two of its parts has fewer
        // rows than who sent it says.
        for len in 0..bytes.len() - 8 {
            assert!(!received(&bytes[..len], 64).is_ok_and(|events| events.len() > 2), "{len}");
        }
        let mut huge = bytes.clone();
        huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(received(&huge, 64).is_err());
        assert!(received(b"{\"n\":1}\n", 64).is_err());
        assert!(received(b"", 64).is_err());
    }
}
