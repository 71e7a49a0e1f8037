//! Plain values that tests change.

use format::directory::{Gap, GapCause};
use format::head::{StripeId, VolumeId};
use format::session_row::{PieceId, PieceSpan, SessionRow, State};
use index::{Interface, LeftOut, SegmentMeta};
use units::{Epoch, InterfaceId, Sequence, Timestamp};
use wire::{FiveTuple, LinkType};

/// The opening that segments and rows are of.
pub(crate) const EPOCH: Epoch = Epoch(3);

pub(crate) fn meta() -> SegmentMeta {
    SegmentMeta {
        volume: VolumeId([0xab; 16]),
        epoch: EPOCH,
        first: StripeId { sequence: Sequence(120), sub: 0 },
        last: StripeId { sequence: Sequence(640), sub: 2 },
        time_min: Timestamp(1_795_171_222_000_000_000),
        time_max: Timestamp(1_795_171_282_000_000_000),
        packets: 1_500_000,
        unindexed_packets: 12,
        unread_packets: 5,
        gaps: vec![Gap {
            cause: GapCause::KernelDrops,
            interface: Some(InterfaceId(0)),
            packets: Some(17),
            bytes: None,
            from: Timestamp(1_795_171_223_000_000_000),
            to: Timestamp(1_795_171_224_000_000_000),
        }],
        interfaces: vec![Interface {
            id: InterfaceId(0),
            link_type: LinkType::ETHERNET,
            name: "eth0".into(),
        }],
        recording: None,
        vlan_in_key: true,
        left_out: vec![LeftOut {
            first: StripeId { sequence: Sequence(11), sub: 0 },
            last: StripeId { sequence: Sequence(11), sub: 3 },
            packets: 4,
        }],
    }
}

pub(crate) fn piece(sequence: u64) -> PieceSpan {
    PieceSpan {
        piece: PieceId { sequence: Sequence(sequence), sub: 0, column: 0 },
        begin: 0,
        end: 0,
    }
}

/// A row without packets.
pub(crate) fn empty(tuple: FiveTuple, start: Timestamp) -> SessionRow {
    SessionRow { state: State::Oth, epoch: EPOCH, ..SessionRow::new(tuple, start) }
}
