//! A connection that goes on from what a row says of it.

use app::Side;
use format::session_row::{History, State};

use super::{End, Flow, Scaled, Tcp, once};

/// How far both ends were, originator first; `None` where the state does not say it.
fn ends_of(state: State) -> [Option<End>; 2] {
    use End::{Closed, Established, Inactive, Reset, SynSent};
    let (orig, resp) = match state {
        State::S0 => (SynSent, Inactive),
        State::S1 => (Established, Established),
        State::S2 => (Closed, Established),
        State::S3 => (Established, Closed),
        State::Sf => (Closed, Closed),
        State::Rej => (SynSent, Reset),
        State::Rsto => (Reset, Established),
        State::Rstr => (Established, Reset),
        State::Rstos0 => (Reset, Inactive),
        State::Rstrh => (Inactive, Reset),
        State::Sh => (Closed, Inactive),
        State::Shr => (Inactive, Closed),
        State::Oth => return [None, None],
    };
    [Some(orig), Some(resp)]
}

impl Flow {
    /// Takes over what a letter of its direction stands for.
    fn note_letter(&mut self, letter: u8) {
        let (bits, end) = match letter {
            b'S' | b'H' => (once::SYN, None),
            b'F' => (once::FIN, Some(End::Closed)),
            b'R' => (once::RST, Some(End::Reset)),
            b'D' => (once::DATA | once::PAYLOAD, None),
            b'A' => (once::ACK, None),
            b'I' => (once::FIN_RST, Some(End::Reset)),
            b'Q' => (once::MULTI_FLAG, None),
            _ => (0, None),
        };
        self.once |= bits;
        let repeated = match letter {
            b'T' => Some(&mut self.retransmissions),
            b'W' => Some(&mut self.zero_windows),
            b'G' => Some(&mut self.gaps),
            _ => None,
        };
        if let Some(Scaled(count)) = repeated {
            *count = (*count).max(1).saturating_mul(if *count == 0 { 1 } else { 10 });
        }
        match end {
            Some(end) => self.enter(end),
            None if self.state == End::Inactive => self.enter(End::Partial),
            None => {}
        }
    }
}

impl Tcp {
    /// The connection that had come to this state with this history. Its sequence numbers are not
    /// known: they begin with the next segment, as those of a connection without a SYN do.
    pub(crate) fn resumed(state: State, history: History, handshake_ns: Option<u64>) -> Self {
        let mut tcp = Self { history, handshake_ns, ..Self::default() };
        for letter in history.as_str().bytes().filter(u8::is_ascii_alphabetic) {
            let side = if letter.is_ascii_uppercase() { Side::Orig } else { Side::Resp };
            let (flow, _, _) = tcp.ends(side);
            flow.note_letter(letter.to_ascii_uppercase());
        }
        if let [Some(orig), Some(resp)] = ends_of(state) {
            tcp.orig.enter(orig);
            tcp.resp.enter(resp);
        }
        tcp.orig.is_answered = history.as_str().contains('h');
        tcp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_goes_on_in_the_state_that_its_row_says() {
        let histories = [
            (State::S0, "S"),
            (State::S1, "ShADad"),
            (State::S2, "ShADadF"),
            (State::S3, "ShADadf"),
            (State::Sf, "ShADadFf"),
            (State::Rej, "Sr"),
            (State::Rsto, "ShADaR"),
            (State::Rstr, "ShADar"),
            (State::Rstos0, "SR"),
            (State::Rstrh, "^hr"),
            (State::Sh, "SF"),
            (State::Shr, "^hf"),
            (State::Oth, "DadA"),
            (State::Oth, "D"),
            (State::Oth, ""),
        ];
        for (state, letters) in histories {
            let resumed = Tcp::resumed(state, letters.parse().unwrap(), Some(7));
            assert_eq!((resumed.state(), resumed.handshake_ns), (state, Some(7)), "{letters}");
            assert_eq!(resumed.history.as_str(), letters);
        }
    }

    #[test]
    fn letters_that_stand_for_many_events_are_counted_on() {
        let mut tcp = Tcp::resumed(State::S1, "ShADTTtad".parse().unwrap(), None);
        assert_eq!((tcp.orig.retransmissions.0, tcp.resp.retransmissions.0), (10, 1));
        assert!(!tcp.orig.retransmissions.count(), "the next letter stands for the hundredth");
    }
}
