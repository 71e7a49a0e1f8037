//! Rows of an answer as bytes on their way: lines, or a stream of Arrow's IPC format, which other
//! programs read as it comes.

use core::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use units::Clock;
use units::number::to_u64;

use crate::{Error, Event, Report, Source, run};

/// How rows go out.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// As these lines.
    Lines(fn(&RecordBatch) -> String),
    /// As Arrow's stream.
    Arrow,
}

/// Answers a query with at most so many rows; `take` gets them as bytes, with how many they are:
/// the begin and the end of a stream are none. A break ends it early.
///
/// # Errors
/// As [`run`].
pub fn send(
    source: &Source,
    text: &str,
    (form, rows_max): (Form, Option<u64>),
    clock: Arc<dyn Clock>,
    take: &mut dyn FnMut(&[u8], u64) -> ControlFlow<()>,
) -> Result<Report, Error> {
    let mut sent = Sent { form, arrow: None, rows_left: rows_max, is_limited: false };
    let mut failed = None;
    let report = run(source, text, clock, &mut |event| {
        let goes_on = sent.part(&event).map(|(bytes, rows)| take(&bytes, rows).is_continue());
        match goes_on {
            Ok(true) if !sent.is_limited => return ControlFlow::Continue(()),
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
        ControlFlow::Break(())
    });
    let mut report = report?;
    let end = failed.map_or_else(|| sent.end(), Err).map_err(Error::Arrow)?;
    if !end.is_empty() {
        // What is behind the last row is sent to whoever still listens.
        let _ended = take(&end, 0);
    }
    report.completeness.limited |= sent.is_limited;
    Ok(report)
}

/// Rows on their way out.
struct Sent {
    form: Form,
    arrow: Option<StreamWriter<Vec<u8>>>,
    rows_left: Option<u64>,
    /// There were more rows than were asked for.
    is_limited: bool,
}

impl Sent {
    fn part(&mut self, event: &Event) -> Result<(Vec<u8>, u64), ArrowError> {
        let rows = match event {
            Event::Columns(columns) => {
                if matches!(self.form, Form::Arrow) {
                    self.arrow = Some(StreamWriter::try_new(Vec::new(), columns)?);
                }
                // They go out with the first rows: a query that fails before has sent nothing, and
                // can be refused.
                return Ok((Vec::new(), 0));
            }
            Event::Rows(rows) => rows,
        };
        let most = self.rows_left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(0));
        self.is_limited = rows.num_rows() > most;
        let rows = rows.slice(0, rows.num_rows().min(most));
        let count = to_u64(rows.num_rows());
        self.rows_left = self.rows_left.map(|left| left.saturating_sub(count));
        let bytes = match (self.form, &mut self.arrow) {
            (Form::Lines(lines), _) => lines(&rows).into_bytes(),
            (Form::Arrow, arrow) => {
                arrow.as_mut().map_or(Ok(()), |arrow| arrow.write(&rows))?;
                self.bytes()
            }
        };
        Ok((bytes, count))
    }

    fn end(&mut self) -> Result<Vec<u8>, ArrowError> {
        self.arrow.as_mut().map_or(Ok(()), StreamWriter::finish)?;
        Ok(self.bytes())
    }

    /// The bytes that were written since this was last called.
    fn bytes(&mut self) -> Vec<u8> {
        self.arrow.as_mut().map(|arrow| core::mem::take(arrow.get_mut())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use arrow_ipc::reader::StreamReader;

    use super::*;

    #[test]
    fn rows_come_back_and_no_more_than_were_asked_for() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, Some(-7)]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), Some(""), None]));
        let rows = RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap();
        for (rows_max, expected) in [(None, 3), (Some(3), 3), (Some(2), 2), (Some(1), 1)] {
            let form = Form::Arrow;
            let mut sent = Sent { form, arrow: None, rows_left: rows_max, is_limited: false };
            let (mut bytes, mut count) = (Vec::new(), 0);
            let batches = [rows.slice(0, 2), rows.slice(2, 1)].map(Event::Rows);
            for event in [Event::Columns(rows.schema())].iter().chain(&batches) {
                let (part, rows) = sent.part(event).unwrap();
                assert!(matches!(event, Event::Rows(_)) || part.is_empty(), "no rows so far");
                bytes.extend(part);
                count += rows;
                if sent.is_limited {
                    break;
                }
            }
            bytes.extend(sent.end().unwrap());
            assert_eq!(sent.is_limited, expected < 3);
            assert_eq!(count, to_u64(expected));
            let read = StreamReader::try_new(&bytes[..], None).unwrap().map(Result::unwrap);
            let read: Vec<RecordBatch> = read.filter(|batch| batch.num_rows() > 0).collect();
            let mut expected = [rows.slice(0, expected.min(2)), rows.slice(2, 1)].to_vec();
            expected.truncate(read.len());
            assert_eq!(read, expected, "{rows_max:?}");
        }
    }
}
