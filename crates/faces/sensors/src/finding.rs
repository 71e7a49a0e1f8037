//! Sessions of sensors.

use fleet::{Fault, Line, Page, Row, Said, Transport, page_rows, pages};
use found::SortBy;
use remote::{Ended, Wanted};

use crate::fault::{of_remote, of_statement};
use crate::network::Network;

/// A session is no longer in bytes: many sensors may send one at once.
const LINE_BYTES_MAX: usize = 1 << 20;

/// A search.
#[derive(Debug)]
pub struct Finding<'a> {
    /// Who is asked.
    pub network: &'a Network,
    /// What they are asked.
    pub query: String,
    /// In which order.
    pub by: SortBy,
    /// A parameter for it; by their start without one.
    pub order: Option<(&'static str, String)>,
    /// So many of each at most.
    pub limit: Option<u64>,
    /// Memory for what waits of one sensor.
    pub memory_bytes: usize,
}

impl Transport for Finding<'_> {
    type Item = Row;

    fn ask(&self, sensor: usize, line: &Line<'_, Row>) -> Result<Said, Fault> {
        let there = self.network.there(sensor, line)?.with_query(self.query.clone());
        let mut left = self.limit;
        pages(line, &mut |cursor, give| {
            let (limit, is_last) = self.page_limit(left);
            let wanted = Wanted {
                limit,
                order: self.order.clone(),
                cursor: cursor.map(str::to_owned),
                line_bytes_max: Some(LINE_BYTES_MAX),
            };
            let mut count = 0;
            let said = remote::sessions(&there, &wanted, &mut |found| {
                count += 1;
                give(Row::new(found, &self.by))
            });
            let said = said.map_err(|ended| match ended {
                Ended::Service(error) => of_remote(error),
                Ended::Taker(fault) => fault,
            })?;
            left = left.map(|left| left.saturating_sub(count));
            let next = said.next_cursor.filter(|_| !is_last);
            Ok(Page { said: of_statement(said.statement)?, next })
        })
    }
}

impl Finding<'_> {
    /// How many sessions the next page has, and whether it is the last one.
    fn page_limit(&self, left: Option<u64>) -> (Option<u64>, bool) {
        // Only the order of time goes on where it was cut.
        if self.order.as_ref().is_some_and(|(name, _)| *name == "sort") {
            return (left, true);
        }
        let rows = page_rows(self.memory_bytes);
        match left {
            Some(left) if left <= rows => (Some(left), true),
            _ => (Some(rows), false),
        }
    }
}
