//! The short way of most segments: in order, between two ends that are connected and have lost
//! nothing. It changes one number, which lies with the hot record, so that the state machine's
//! memory is not touched.

use wire::TcpHeader;

use super::{ACK, End, FIN, Flow, RST, SYN, Side, Tcp, once};
use crate::seen::SEGMENT_MAX;

/// At this distance the long way is taken, so that what was seen is trimmed before its size
/// overflows.
const STRIDE_SHIFT: u32 = 30;

/// What the short way needs to know. By default no segment takes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Steady {
    /// Sequence numbers that follow the newest bytes of originator and responder.
    next: [u32; 2],
    /// Letters that are in the history already; none while the long way is needed.
    letters: [u8; 2],
}

impl Steady {
    /// Whether any segment takes the short way.
    pub(crate) fn is_any(&self) -> bool {
        self.letters != [0; 2]
    }

    /// Whether taking the segment into account changes nothing but the next number.
    #[inline]
    pub(crate) fn is_plain(&self, side: Side, header: &TcpHeader, len: u32) -> bool {
        let ([orig, resp], [orig_letters, resp_letters]) = (self.next, self.letters);
        let (mine, peer, letters) = match side {
            Side::Orig => (orig, resp, orig_letters),
            Side::Resp => (resp, orig, resp_letters),
        };
        let letter = if len > 0 { once::DATA } else { once::ACK };
        let after = mine.wrapping_add(len);
        header.flags & (SYN | FIN | RST | ACK) == ACK
            && header.window != 0
            && letters & letter != 0
            && (len == 0 || header.tcp_seq == mine)
            && len <= SEGMENT_MAX
            && mine >> STRIDE_SHIFT == after >> STRIDE_SHIFT
            && header.tcp_ack.wrapping_sub(peer).cast_signed() <= 0
    }

    /// Takes the segment into account if it is plain; else changes nothing and is false.
    #[inline]
    pub(crate) fn take(&mut self, side: Side, header: &TcpHeader, len: u32) -> bool {
        let is_plain = self.is_plain(side, header, len);
        if is_plain {
            let mine = side.of(&mut self.next);
            *mine = mine.wrapping_add(len);
        }
        is_plain
    }
}

impl Flow {
    /// An acknowledged segment that is in order changes nothing but `seen`.
    fn is_steady(&self) -> bool {
        !matches!(self.state, End::Inactive | End::Reset) && self.initial.is_some()
    }
}

impl Tcp {
    /// From here on, until [`Self::resume`], segments may take the short way.
    pub(crate) fn steady(&self) -> Steady {
        let (orig, resp) = (&self.orig, &self.resp);
        let is_shaken = !orig.is_answered || self.handshake_ns.is_some() || self.syn_time.is_none();
        match (orig.seen.next_in_order(), resp.seen.next_in_order()) {
            (Some(orig_next), Some(resp_next))
                if is_shaken && orig.is_steady() && resp.is_steady() =>
            {
                let letters = [orig.once, resp.once].map(|once| once & (once::DATA | once::ACK));
                Steady { next: [orig_next, resp_next], letters }
            }
            _ => Steady::default(),
        }
    }

    /// Takes over what went the short way.
    pub(crate) fn resume(&mut self, steady: &Steady) {
        if steady.is_any() {
            let [orig, resp] = steady.next;
            self.orig.seen.extend(orig);
            self.resp.seen.extend(resp);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Timestamp;
    use wire::TcpOptions;

    use super::*;

    /// A segment as a change of what its sender and its peer have sent so far.
    fn segments() -> impl Strategy<Value = Vec<(bool, u8, i32, u32, i32, bool)>> {
        let flags = prop_oneof![
            20 => Just(ACK),
            3 => Just(ACK | 8),
            1 => Just(SYN),
            1 => Just(SYN | ACK),
            1 => Just(FIN | ACK),
            1 => any::<u8>(),
        ];
        let shift = || prop_oneof![20 => Just(0), 1 => -200_i32..200, 1 => any::<i32>()];
        let len = prop_oneof![
            10 => Just(0_u32),
            10 => 1_u32..1500,
            2 => (SEGMENT_MAX - 2)..(SEGMENT_MAX + 2),
        ];
        let segment = (any::<bool>(), flags, shift(), len, shift(), prop::bool::weighted(0.97));
        prop::collection::vec(segment, 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn the_short_way_leads_where_the_long_one_does(
            origins in any::<[u32; 2]>(),
            segments in segments(),
            is_opened: bool,
            // Jumps of half a stride bring the numbers round the circle.
            long in 0_u32..400,
        ) {
            let (mut plain, mut short) = (Tcp::default(), Tcp::default());
            let (mut steady, mut taken) = (Steady::default(), 0);
            let mut sent = origins;
            let opening = [(true, SYN, 0, 0, 0, true), (false, SYN | ACK, 0, 0, 0, true)];
            let body = segments.into_iter().cycle().take(usize::try_from(long).unwrap());
            let all = opening.into_iter().filter(|_| is_opened).chain(body);
            for (at, (is_orig, flags, shift, len, ack_shift, is_open)) in (0..).zip(all) {
                let side = if is_orig { Side::Orig } else { Side::Resp };
                let (me, peer) = if is_orig { (0, 1) } else { (1, 0) };
                sent[me] = sent[me].wrapping_add_signed(shift);
                let header = TcpHeader {
                    tcp_seq: sent[me],
                    tcp_ack: sent[peer].wrapping_add_signed(ack_shift),
                    flags,
                    window: u16::from(is_open),
                    options: TcpOptions::default(),
                };
                sent[me] = sent[me]
                    .wrapping_add(len)
                    .wrapping_add(u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0));
                plain.segment(side, Timestamp(at), &header, len);
                if steady.take(side, &header, len) {
                    taken += 1;
                } else {
                    short.resume(&steady);
                    short.segment(side, Timestamp(at), &header, len);
                    steady = short.steady();
                }
            }
            short.resume(&steady);
            prop_assert_eq!(format!("{plain:?}"), format!("{short:?}"));
            prop_assert!(taken <= long);
        }
    }

    #[test]
    fn a_stream_of_many_gigabytes_is_steady_and_the_same() {
        let (mut plain, mut short, mut steady) =
            (Tcp::default(), Tcp::default(), Steady::default());
        let mut taken = 0;
        for number in 0..20_000_u32 {
            let is_orig = number.is_multiple_of(2);
            let side = if is_orig { Side::Orig } else { Side::Resp };
            let sent = (number / 2).wrapping_mul(SEGMENT_MAX);
            let header = TcpHeader {
                tcp_seq: if is_orig { sent } else { 7 },
                tcp_ack: if is_orig { 7 } else { sent.wrapping_add(SEGMENT_MAX) },
                flags: ACK,
                window: 1,
                options: TcpOptions::default(),
            };
            let len = if is_orig { SEGMENT_MAX } else { 0 };
            plain.segment(side, Timestamp(0), &header, len);
            if steady.take(side, &header, len) {
                taken += 1;
            } else {
                short.resume(&steady);
                short.segment(side, Timestamp(0), &header, len);
                steady = short.steady();
            }
        }
        short.resume(&steady);
        assert_eq!(format!("{plain:?}"), format!("{short:?}"));
        assert!((19_980..20_000).contains(&taken), "{taken}");
    }
}
