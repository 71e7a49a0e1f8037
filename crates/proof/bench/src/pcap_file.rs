//! A capture of Ethernet frames in the making: pcap with microseconds, as every recorder reads it.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use units::number::to_u64;

pub(crate) const FILE_HEADER_BYTES: u64 = 24;
/// 2023-11-14 22:13:20 UTC.
const START_S: u64 = 1_700_000_000;

/// The file, and its bytes so far.
pub(crate) struct PcapFile {
    writer: BufWriter<host::Output>,
    path: PathBuf,
    bytes: u64,
}

impl PcapFile {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let mut writer = BufWriter::with_capacity(1 << 20, host::Output::create(path, false)?);
        // Magic with microseconds, version 2.4, UTC, snaplen 262144, Ethernet.
        for field in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1_u32] {
            writer.write_all(&field.to_le_bytes())?;
        }
        Ok(Self { writer, path: path.to_owned(), bytes: FILE_HEADER_BYTES })
    }

    /// A whole frame, so many microseconds after the beginning.
    pub(crate) fn record(&mut self, time_us: u64, frame: &[u8]) -> Result<()> {
        let len = to_u64(frame.len());
        for field in [START_S + time_us / 1_000_000, time_us % 1_000_000, len, len] {
            let field = u32::try_from(field).context("a capture of so many seconds")?;
            self.writer.write_all(&field.to_le_bytes())?;
        }
        self.writer.write_all(frame)?;
        self.bytes += 16 + len;
        Ok(())
    }

    /// The bytes of the file.
    pub(crate) fn finish(self) -> Result<u64> {
        let Self { writer, path, bytes } = self;
        let output = writer.into_inner().map_err(std::io::IntoInnerError::into_error);
        output.with_context(|| format!("cannot write {}", path.display()))?.finish()?;
        Ok(bytes)
    }
}
