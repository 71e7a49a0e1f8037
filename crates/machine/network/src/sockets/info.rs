//! `struct tcp_info` of `include/uapi/linux/tcp.h`, of any length: kernels only append to it.

use host::native::{u32_of, u64_of};

/// Options that both sides agreed on with their SYNs (`tcpi_options`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SynOptions {
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Window scale (RFC 7323).
    pub window_scale: bool,
}

/// What TCP says of a connection. Fields that an older kernel does not have are `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// Options of the handshake.
    pub options: SynOptions,
    /// Powers of two by which windows are scaled: of those that we hear of, and of ours.
    pub window_scales: (u8, u8),
    /// The last delivery rate was limited by the application.
    pub is_app_limited: bool,
    /// Retransmission timeout in microseconds.
    pub rto_us: u32,
    /// Largest segment that is sent, in bytes.
    pub send_mss: u32,
    /// Largest segment received so far, in bytes.
    pub receive_mss: u32,
    /// Segments under way.
    pub unacked: u32,
    /// Segments thought lost.
    pub lost: u32,
    /// Milliseconds since data was sent last.
    pub last_sent_ms: u32,
    /// Milliseconds since data was received last.
    pub last_received_ms: u32,
    /// Milliseconds since an acknowledgement was received last.
    pub last_acknowledged_ms: u32,
    /// Largest packet of the path, in bytes.
    pub path_mtu: u32,
    /// Smoothed round trip in microseconds.
    pub rtt_us: u32,
    /// Its mean deviation in microseconds.
    pub rtt_deviation_us: u32,
    /// Congestion window, in segments, above which it grows slowly.
    pub slow_start_threshold: u32,
    /// Congestion window in segments.
    pub congestion_window: u32,
    /// Largest segment that this side announced to the other.
    pub advertised_mss: u32,
    /// Round trip as a receiver sees it, in microseconds.
    pub receive_rtt_us: u32,
    /// Window that the receiver's automatic tuning has reached, in bytes.
    pub receive_space: u32,
    /// Segments retransmitted since the connection began.
    pub retransmitted: u32,
    /// Bytes that were acknowledged.
    pub bytes_acked: Option<u64>,
    /// Bytes received in order.
    pub bytes_received: Option<u64>,
    /// Segments sent.
    pub segments_out: Option<u32>,
    /// Segments received.
    pub segments_in: Option<u32>,
    /// Bytes that wait to be sent for the first time.
    pub unsent_bytes: Option<u32>,
    /// Least round trip seen, in microseconds.
    pub min_rtt_us: Option<u32>,
    /// Segments sent with data.
    pub data_segments_out: Option<u32>,
    /// Latest rate at which the other side took data, in bytes a second.
    pub delivery_rate: Option<u64>,
    /// Microseconds in which there was data to send.
    pub busy_us: Option<u64>,
    /// Of these, those in which the receiver's window was shut.
    pub receiver_limited_us: Option<u64>,
    /// Of these, those in which our send buffer was full.
    pub buffer_limited_us: Option<u64>,
    /// Bytes sent, retransmissions included.
    pub bytes_sent: Option<u64>,
    /// Bytes retransmitted.
    pub bytes_retransmitted: Option<u64>,
    /// Segments that the other side had twice.
    pub duplicates: Option<u32>,
    /// Times that packets had changed their order.
    pub reorderings: Option<u32>,
    /// Segments received out of order.
    pub out_of_order: Option<u32>,
    /// Window that the other side offers, in bytes.
    pub send_window: Option<u32>,
}

impl TcpInfo {
    /// Reads what is there; `None` of less than kernels have given since 2.6.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let byte = |at: usize| bytes.get(at).copied();
        let word = |at: usize| Some(u32_of(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64_of(*bytes.get(at..)?.first_chunk()?));
        let (options, scales) = (byte(5)?, byte(6)?);
        Some(Self {
            options: SynOptions {
                timestamps: options & 1 != 0,
                sack: options & 2 != 0,
                window_scale: options & 4 != 0,
            },
            window_scales: (scales & 0xf, scales >> 4),
            is_app_limited: byte(7)? & 1 != 0,
            rto_us: word(8)?,
            send_mss: word(16)?,
            receive_mss: word(20)?,
            unacked: word(24)?,
            lost: word(32)?,
            last_sent_ms: word(44)?,
            last_received_ms: word(52)?,
            last_acknowledged_ms: word(56)?,
            path_mtu: word(60)?,
            rtt_us: word(68)?,
            rtt_deviation_us: word(72)?,
            slow_start_threshold: word(76)?,
            congestion_window: word(80)?,
            advertised_mss: word(84)?,
            receive_rtt_us: word(92)?,
            receive_space: word(96)?,
            retransmitted: word(100)?,
            bytes_acked: long(120),
            bytes_received: long(128),
            segments_out: word(136),
            segments_in: word(140),
            unsent_bytes: word(144),
            min_rtt_us: word(148),
            data_segments_out: word(156),
            delivery_rate: long(160),
            busy_us: long(168),
            receiver_limited_us: long(176),
            buffer_limited_us: long(184),
            bytes_sent: long(200),
            bytes_retransmitted: long(208),
            duplicates: word(216),
            reorderings: word(220),
            out_of_order: word(224),
            send_window: word(228),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_kernel_tells_less_and_a_newer_one_is_read_as_well() {
        let mut bytes = [0_u8; 280];
        bytes[5] = 1 | 4;
        bytes[6] = 0x97;
        bytes[7] = 1;
        for (at, value) in [(80, 10_u8), (100, 3), (160, 200), (228, 77)] {
            bytes[at] = value;
        }
        let info = TcpInfo::read(&bytes).unwrap();
        assert_eq!((info.options.timestamps, info.options.sack), (true, false));
        assert_eq!((info.window_scales, info.is_app_limited), ((7, 9), true));
        assert_eq!((info.congestion_window, info.retransmitted), (10, 3));
        assert_eq!((info.delivery_rate, info.send_window), (Some(200), Some(77)));
        let old = TcpInfo::read(&bytes[..104]).unwrap();
        assert_eq!((old.retransmitted, old.bytes_acked, old.send_window), (3, None, None));
        assert_eq!(TcpInfo::read(&bytes[..230]).unwrap().send_window, None);
        assert_eq!(TcpInfo::read(&bytes[..90]), None);
    }
}
