//! Frames made by hand.

use capture::{Interface, Packet};
use units::{NANOS_PER_SECOND, Timestamp};
use wire::LinkType;

/// A frame with its time.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) ms: i64,
    pub(crate) data: Vec<u8>,
}

impl Made {
    pub(crate) fn second(&self) -> i64 {
        self.ms.div_euclid(1000)
    }

    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet {
            timestamp: Timestamp(self.ms * (NANOS_PER_SECOND / 1000)),
            interface: 0,
            original_len: u32::try_from(self.data.len()).unwrap(),
            outbound: None,
            head: &self.data,
            tag: None,
            tail: &[],
            options: &[],
        }
    }
}

pub(crate) fn interface() -> Interface {
    Interface {
        name: "made".to_owned(),
        description: None,
        link_type: LinkType::ETHERNET,
        snaplen: 0,
        filter: None,
        options: Vec::new(),
    }
}

/// A datagram from one end to another, each the last byte of an address and a port.
pub(crate) fn udp(ms: i64, from: (u8, u16), to: (u8, u16), payload: &[u8]) -> Made {
    let len = |rest: usize| u16::try_from(payload.len() + rest).unwrap().to_be_bytes();
    let mut data = vec![2; 12];
    data.extend([8, 0, 0x45, 0]);
    data.extend(len(28));
    data.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    data.extend([10, 0, 0, from.0, 10, 0, 0, to.0]);
    data.extend(from.1.to_be_bytes());
    data.extend(to.1.to_be_bytes());
    data.extend(len(8));
    data.extend([0, 0]);
    data.extend(payload);
    Made { ms, data }
}

/// A message of DNS: flags, a name, a type, and addresses that answer.
pub(crate) fn dns(id: u16, flags: u16, name: &str, answers: &[[u8; 4]]) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend(flags.to_be_bytes());
    let count = u16::try_from(answers.len()).unwrap().to_be_bytes();
    message.extend([[0, 1], count, [0, 0], [0, 0]].concat());
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend(label.bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    for address in answers {
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        message.extend(address);
    }
    message
}
