//! The column chunks of one row group that a reading needs, in memory and verified.

use bytes::{Buf as _, Bytes, buf};
use parquet::arrow::ProjectionMask;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};

use crate::content::Source;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::shape;

/// Chunks closer together are read at once: what lies between costs less than another read.
const GAP_BYTES: u64 = 32 << 10;

/// What the Parquet reader sees of the file.
#[derive(Debug)]
pub(crate) struct Chunks {
    size_bytes: u64,
    /// Ascending.
    chunks: Vec<(u64, Bytes)>,
}

impl Chunks {
    /// Reads the columns of `mask`, for all rows of a group or those at these places, which ascend.
    /// Without a filter nothing is verified.
    pub(crate) fn read(
        source: &Source,
        filter: Option<&Filter>,
        (metadata, group, places): (&ParquetMetaData, usize, Option<&[usize]>),
        mask: &ProjectionMask,
    ) -> Result<Self> {
        let row_group = metadata.row_group(group);
        let columns = row_group.columns().iter().enumerate();
        let mut wanted: Vec<(u64, u64, usize)> = columns
            .filter(|(column, _)| mask.leaf_included(*column))
            .map(|(column, chunk)| {
                let (offset, len) = chunk.byte_range();
                (offset, offset + len, column)
            })
            .collect();
        wanted.sort_unstable();
        let near = |before: &(u64, u64, usize), behind: &(u64, u64, usize)| {
            behind.0 <= before.1.saturating_add(GAP_BYTES)
        };
        let mut chunks = Vec::with_capacity(wanted.len());
        for run in wanted.chunk_by(near) {
            let Some(&(begin, ..)) = run.first() else { continue };
            let end = run.iter().map(|&(_, end, _)| end).max().unwrap_or(begin);
            let bytes = source.read(begin, to_usize(end - begin))?;
            for &(offset, end, column) in run {
                let chunk = bytes.slice(to_usize(offset - begin)..to_usize(end - begin));
                if filter.is_some_and(|filter| !filter.vouches(group, column, &chunk)) {
                    return Err(Error::Checksum { part: "column chunk" });
                }
                shape::check_pages(&chunk, (row_group, column), places)?;
                chunks.push((offset, chunk));
            }
        }
        Ok(Self { size_bytes: source.size_bytes(), chunks })
    }

    /// The rest of the chunk in which `start` lies.
    fn from(&self, start: u64) -> ParquetResult<Bytes> {
        let behind = self.chunks.partition_point(|(offset, _)| *offset <= start);
        let chunk = behind.checked_sub(1).and_then(|at| self.chunks.get(at));
        chunk
            .map(|(offset, chunk)| (to_usize(start - offset), chunk))
            .filter(|(at, chunk)| *at < chunk.len())
            .map(|(at, chunk)| chunk.slice(at..))
            .ok_or_else(|| ParquetError::EOF(format!("no column chunk was read at {start}")))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.size_bytes
    }
}

impl ChunkReader for Chunks {
    type T = buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let rest = self.from(start)?;
        if length > rest.len() {
            return Err(ParquetError::EOF(format!("a page at {start} exceeds its column chunk")));
        }
        Ok(rest.slice(..length))
    }
}

fn to_usize(len: u64) -> usize {
    usize::try_from(len).expect("a row group fits memory")
}
