//! Rows of an SQL query, as lines of JSON or as Arrow's stream.

use core::ops::ControlFlow;
use std::io::Write as _;
use std::os::unix::net::UnixStream;

use page::text::plural;
use questions::{Answered, Refused, SqlWanted, Why};

use super::{SqlRefused, Work, refused};

impl Work<'_> {
    pub(super) fn sql(
        &self,
        wanted: &SqlWanted,
        mut data: &UnixStream,
    ) -> Result<Answered, Refused> {
        let none = "this build has no SQL; the packages have it";
        let job = self.recorders.sql.ok_or_else(|| Refused::because(&none))?;
        let (options, notes) = self.options()?;
        let (mut rows, mut bytes, mut cut_by) = (0_u64, 0_u64, None);
        let asked = (&*wanted.text, wanted.form, wanted.rows_max);
        let answered = job(&options, asked, &mut |part, count| {
            if self.is_over() {
                cut_by = Some("time");
                return ControlFlow::Break(());
            }
            rows = rows.saturating_add(count);
            bytes = bytes.saturating_add(units::number::to_u64(part.len()));
            if bytes > wanted.bytes_max {
                cut_by = Some("bytes");
                return ControlFlow::Break(());
            }
            // Where nobody reads there is nobody to be told.
            if data.write_all(part).is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        let mut completeness = answered.map_err(|why| match why {
            SqlRefused::Query(text) => Refused { why: Why::Wrong, ..Refused::because(&text) },
            SqlRefused::Volume(error) => refused(&error),
            SqlRefused::Other(text) => Refused::because(&text),
        })?;
        completeness.stopped |= cut_by == Some("time");
        completeness.limited |= cut_by == Some("bytes");
        let cut_by = cut_by.or(completeness.limited.then_some("limit"));
        Ok(Answered {
            count: rows,
            next: None,
            statement: self.statement(&plural(rows, "row"), &completeness, (cut_by, notes)),
            manifest: None,
            hashes: None,
        })
    }
}
