//! The thread that turns closed segments into Parquet while the next one fills.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use format::head::VolumeId;
use index::Encoded;
use session::Slice;

use crate::segment::OpenSegment;

/// A segment whose rows have all come out of the table.
pub(crate) struct ClosedSegment {
    pub(crate) segment: OpenSegment,
    /// Packets of stripes that the table never saw.
    pub(crate) missed_packets: u64,
    pub(crate) recording: Option<String>,
    /// How many threads may encode it: one while packets come, which need the others more.
    pub(crate) threads: usize,
}

/// Segments in, Parquet files out, in the same order; one waits while one is encoded.
pub(crate) struct Encoder {
    segments: SyncSender<ClosedSegment>,
    encoded: Receiver<Result<Encoded, index::Error>>,
    outstanding: usize,
    /// Memory of rows that are encoded: tens of MB, which the system would have to make again.
    spare: Receiver<Vec<Slice>>,
}

impl Encoder {
    pub(crate) fn start(volume: VolumeId) -> Result<Self, std::io::Error> {
        let (segments, queue) = sync_channel::<ClosedSegment>(1);
        let (results, encoded) = sync_channel(4);
        let (memory, spare) = sync_channel(1);
        let body = move || {
            for ClosedSegment { segment, missed_packets, recording, threads } in queue {
                let result = segment.encode(volume, missed_packets, recording.as_deref(), threads);
                if results.send(result).is_err() {
                    return;
                }
                let mut rows = segment.rows;
                rows.clear();
                // Where the last one was not needed yet, this one is not either.
                drop(memory.try_send(rows));
            }
        };
        std::thread::Builder::new().name("encode".to_owned()).spawn(body)?;
        Ok(Self { segments, encoded, outstanding: 0, spare })
    }

    /// Memory for the rows of a segment, used before for others.
    pub(crate) fn spare_rows(&self) -> Option<Vec<Slice>> {
        self.spare.try_recv().ok()
    }

    /// Hands over a segment; waits while another one is waiting.
    pub(crate) fn submit(&mut self, segment: ClosedSegment) {
        self.segments.send(segment).expect("the encoder lives as long as its sender");
        self.outstanding += 1;
    }

    /// The next file: waits for it as long as one is under way, or takes only what is there.
    pub(crate) fn next(&mut self, wait: bool) -> Result<Option<Encoded>, index::Error> {
        if self.outstanding == 0 {
            return Ok(None);
        }
        let result = if wait {
            self.encoded.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            self.encoded.try_recv()
        };
        match result {
            Ok(encoded) => {
                self.outstanding -= 1;
                encoded.map(Some)
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => unreachable!("the encoder answers every segment"),
        }
    }
}
