//! What other threads ask of the ring writer.

use device::{Buffer, Device};
use format::directory::Gap;
use format::head::{StripeId, Totals};
use format::piece::{PieceBuilder, Statistics};
use format::superblock::Spare;
use stage::Sender;
use units::{MemberId, QueueId, Sequence, Timestamp};
use volume::{NewPlace, Seat};
use writer::{Repair, Returning};

/// What the ring writer is asked to do.
#[derive(Debug)]
pub(crate) enum Task {
    /// Packets.
    Packets(FilledColumn),
    /// Parts of a segment's index: at most one for each data column, and columns of padding behind
    /// them, all of `rows` rows. `answer` hears their stripe.
    IndexParts { columns: Vec<Buffer>, rows: u16, answer: Sender<StripeId> },
    /// All parts are placed: heads that follow point to the first one.
    IndexComplete { first_part: StripeId },
    /// Rows of a member that it lacks. `answer` hears the number of the write, or why there is
    /// none.
    Repair { repair: Repair, answer: Sender<Result<u64, volume::Error>> },
    /// A member lacks nothing from `clean_from` on; `done` has bytes written and pieces lost when
    /// nothing is left to do.
    Cleaned { seat: Seat, clean_from: Sequence, done: Option<(u64, usize)> },
    /// An absent member is there again.
    Returned { returning: Returning, place: Option<NewPlace>, takes_discards: bool },
    /// A spare that may take the place of an absent member.
    Spare { member: MemberId, spare: Spare, device: Box<dyn Device>, takes_discards: bool },
    /// Everything that a queue had taken before a question was sent.
    UpTo { queue: QueueId, number: u64 },
    /// No packets will follow; indexes may.
    EndOfPackets,
}

/// A column of packets whose body is not yet ended.
#[derive(Debug)]
pub(crate) struct FilledColumn {
    pub(crate) column: Buffer,
    pub(crate) builder: PieceBuilder,
    /// Cut by time rather than full: it may be split to use up a slot.
    pub(crate) cut: bool,
    pub(crate) statistics: Vec<Statistics>,
    pub(crate) gaps: Vec<Gap>,
    /// Losses since the column before.
    pub(crate) losses: Totals,
    /// When its first packet came.
    pub(crate) opened_ns: i64,
    /// Its queue, and up to when that has sent everything with this column.
    pub(crate) claim: (QueueId, Timestamp),
}
