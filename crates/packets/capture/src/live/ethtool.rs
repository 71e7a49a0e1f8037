//! What a card and its driver say of themselves, by the questions of `linux/ethtool.h`: the drops
//! that they counted, and settings that make a capture lose packets or show them otherwise than
//! they were on the wire. None of the questions needs a privilege. A driver that does not know one
//! gives nothing.

use std::fs;
use std::thread;

use core::num::NonZero;

use super::socket::PacketSocket;

/// `ETHTOOL_` numbers.
const GET_DRIVER: u32 = 0x03;
const GET_RINGS: u32 = 0x10;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_TSO: u32 = 0x1e;
const GET_GSO: u32 = 0x23;
const GET_FLAGS: u32 = 0x25;
const GET_GRO: u32 = 0x2b;
const GET_SET_INFO: u32 = 0x37;
const GET_CHANNELS: u32 = 0x3c;
const GET_HASH: u32 = 0x46;
/// `ETH_SS_STATS`: the set of names of statistics.
const STATISTICS_SET: u32 = 1;
/// `ETH_FLAG_LRO`.
const LRO_FLAG: u32 = 1 << 15;
/// `ETH_FLAG_RXVLAN`.
const TAGS_OUT_FLAG: u32 = 1 << 8;
/// `ETH_GSTRING_LEN`.
const NAME_BYTES: usize = 32;
/// More statistics than any driver has.
const STATISTICS_MAX: usize = 1 << 14;

/// Endings of names under which drivers count what they lost because the host did not take it,
/// without the number of a queue: `rx_missed_errors`, `rx_no_buffer_count`, `rx_out_of_buffer`,
/// `rx_no_dma_resources`, `rx_fifo_errors`, `rx_discards_phy`, `port.rx_dropped` and their like.
const LOST: [&str; 8] = [
    "missed",
    "no_buf",
    "out_of_buffer",
    "no_dma_resource",
    "fifo_error",
    "discard",
    "rx_dropped",
    "overrun",
];

/// Which of a driver's statistics count losses.
#[derive(Clone, Default, Debug)]
pub(super) struct Losses {
    /// Statistics in all.
    count: usize,
    places: Vec<usize>,
}

impl Losses {
    /// By the answer to a question for `count` names.
    fn named(answer: &[u32], count: usize) -> Option<Self> {
        let names = answer.get(3..)?.chunks_exact(NAME_BYTES / 4).map(name_of).take(count);
        let places = names.enumerate().filter(|(_, name)| is_loss(name)).map(|(place, _)| place);
        Some(Self { count, places: places.collect() })
    }

    /// Their values in the answer to a question for as many.
    fn counted(&self, answer: &[u32]) -> Option<Vec<u64>> {
        let counts: Vec<u64> = answer.get(2..)?.chunks_exact(2).map(number_of).collect();
        // Another number of them, and the places are no longer those of the names.
        let given = answer.get(1).and_then(|&count| usize::try_from(count).ok());
        let values = || self.places.iter().filter_map(|&at| counts.get(at).copied()).collect();
        (given == Some(self.count)).then(values)
    }
}

/// One interface, asked through a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Card<'a> {
    pub(super) socket: &'a PacketSocket,
    pub(super) name: &'a str,
}

impl Card<'_> {
    /// Where among the driver's statistics losses are counted.
    pub(super) fn find_losses(self) -> Losses {
        self.ask_names().unwrap_or_default()
    }

    /// Packets lost in the card or its driver since it came up, at least; `None` where the driver
    /// does not count them.
    ///
    /// The same loss may be counted under several names, so the largest count is taken, not the
    /// sum.
    pub(super) fn drops(self, losses: &Losses) -> Option<u64> {
        let missed = kernel_count(self.name, "rx_missed_errors");
        let kernel = missed.zip(kernel_count(self.name, "rx_fifo_errors"));
        let kernel = kernel.map(|(missed, fifo)| missed.saturating_add(fifo));
        let driver = self.ask_losses(losses).unwrap_or_default();
        driver.into_iter().chain(kernel).max()
    }

    /// Frames that the card refused because of their length since it came up.
    pub(super) fn too_long(self) -> Option<u64> {
        kernel_count(self.name, "rx_length_errors")
    }

    /// Receive queues, of which there is one at least.
    pub(super) fn receive_queues(self) -> u32 {
        let [_, _, _, _, _, receive, _, _, combined] = self.channels().unwrap_or_default();
        receive.saturating_add(combined).max(1)
    }

    /// Transmit queues, of which there is one at least.
    pub(super) fn transmit_queues(self) -> u32 {
        let [_, _, _, _, _, _, transmit, _, combined] = self.channels().unwrap_or_default();
        transmit.saturating_add(combined).max(1)
    }

    /// `ethtool_channels`: the command, four largest numbers, four numbers: receive, transmit,
    /// other, combined.
    fn channels(self) -> Option<[u32; 9]> {
        let mut request = [GET_CHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
        self.ask(&mut request)?;
        Some(request)
    }

    /// Whether VLAN tags are taken out of frames and reported beside them.
    pub(super) fn takes_tags_out(self) -> bool {
        self.value(GET_FLAGS).is_some_and(|flags| flags & TAGS_OUT_FLAG != 0)
    }

    /// Whether the hash that chooses a receive queue is the same for both directions.
    pub(super) fn hashes_symmetrically(self) -> bool {
        // `ethtool_rxfh` without its table and its key: the command, a context, two lengths, then
        // the function and how its input is transformed, a byte each, and a reserved word.
        let mut request = [GET_HASH, 0, 0, 0, 0, 0, 0];
        let asked = self.ask(&mut request);
        let [_, _, _, _, function, ..] = request;
        let [_, transform, ..] = function.to_le_bytes();
        // `RXH_XFRM_SYM_XOR` and `RXH_XFRM_SYM_OR_XOR`.
        asked.is_some() && transform & 3 != 0
    }

    /// The name of the driver.
    pub(super) fn driver(self) -> Option<String> {
        // `ethtool_drvinfo`: the command, the name in 32 bytes, and more of 160 bytes.
        let mut request = [0; 49];
        *request.first_mut()? = GET_DRIVER;
        self.ask(&mut request)?;
        Some(name_of(request.get(1..=NAME_BYTES / 4)?))
    }

    fn ask_names(self) -> Option<Losses> {
        // `ethtool_sset_info`: the command, a reserved word, the sets as 64 bits, the length.
        let mut info = [GET_SET_INFO, 0, 1 << STATISTICS_SET, 0, 0];
        self.ask(&mut info)?;
        let [.., given] = info;
        let count =
            usize::try_from(given).ok().filter(|count| (1..=STATISTICS_MAX).contains(count));
        let count = count?;
        // `ethtool_gstrings`: the command, the set, the number of names, the names.
        let mut strings = vec![0; 3 + with_room(count) * NAME_BYTES / 4];
        strings.get_mut(..3)?.copy_from_slice(&[GET_STRINGS, STATISTICS_SET, given]);
        self.ask(&mut strings)?;
        Losses::named(&strings, count)
    }

    fn ask_losses(self, losses: &Losses) -> Option<Vec<u64>> {
        if losses.places.is_empty() {
            return None;
        }
        // `ethtool_stats`: the command, the number of values, the values of 64 bits.
        let mut values = vec![0; 2 + with_room(losses.count) * 2];
        let given = u32::try_from(losses.count).ok()?;
        values.get_mut(..2)?.copy_from_slice(&[GET_STATISTICS, given]);
        self.ask(&mut values)?;
        losses.counted(&values)
    }

    fn ask(self, request: &mut [u32]) -> Option<()> {
        self.socket.ask_driver(self.name, request).ok()
    }

    /// The answer to a question of one number: `ethtool_value`.
    fn value(self, question: u32) -> Option<u32> {
        let mut request = [question, 0];
        self.ask(&mut request)?;
        let [_, value] = request;
        Some(value)
    }

    fn is_on(self, question: u32) -> bool {
        self.value(question).is_some_and(|value| value != 0)
    }

    /// What makes this capture worse than it need be, each with the command that mends it.
    pub(super) fn advice(self) -> Vec<String> {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let advice =
            [self.merging(), self.cutting(), self.small_ring(), self.one_queue(processors)];
        advice.into_iter().flatten().collect()
    }

    fn merging(self) -> Option<String> {
        let lro = self.value(GET_FLAGS).is_some_and(|flags| flags & LRO_FLAG != 0);
        let on = [("lro", lro), ("gro", self.is_on(GET_GRO))];
        let (said, command) = switched_on(&on)?;
        let name = self.name;
        Some(format!(
            "interface {name} merges segments before they are captured ({said}): packets are not \
             stored as they were on the wire; ethtool -K {name} {command}"
        ))
    }

    fn cutting(self) -> Option<String> {
        // Where nothing was ever sent, nothing is cut: a port that is there to receive.
        if kernel_count(self.name, "tx_packets") == Some(0) {
            return None;
        }
        let on = [("tso", self.is_on(GET_TSO)), ("gso", self.is_on(GET_GSO))];
        let (said, command) = switched_on(&on)?;
        let name = self.name;
        Some(format!(
            "interface {name} cuts what this host sends only after it is captured ({said}); \
             ethtool -K {name} {command}"
        ))
    }

    fn small_ring(self) -> Option<String> {
        // `ethtool_ringparam`: the command, four largest sizes, four sizes; receive is the first.
        let mut request = [GET_RINGS, 0, 0, 0, 0, 0, 0, 0, 0];
        self.ask(&mut request)?;
        let [_, largest, _, _, _, size, ..] = request;
        let name = self.name;
        (size < largest).then(|| {
            format!(
                "interface {name} has {size} of {largest} receive descriptors: the fewer, the \
                 sooner it drops; ethtool -G {name} rx {largest}"
            )
        })
    }

    fn one_queue(self, processors: usize) -> Option<String> {
        let [_, receive_max, _, _, combined_max, receive, _, _, combined] = self.channels()?;
        let (kind, largest) =
            if combined_max > 0 { ("combined", combined_max) } else { ("rx", receive_max) };
        let wanted = largest.min(u32::try_from(processors / 2).unwrap_or(u32::MAX));
        let name = self.name;
        (receive + combined <= 1 && wanted > 1).then(|| {
            format!(
                "interface {name} has one receive queue, so one processor of {processors} \
                 receives everything; ethtool -L {name} {kind} {wanted}"
            )
        })
    }
}

/// For tests that give any bytes: a driver's answers. Gives how many losses it names.
pub(crate) fn read_any_answer(bytes: &[u8]) -> usize {
    let words: Vec<u32> =
        bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let count = words.get(2).and_then(|&count| usize::try_from(count).ok()).unwrap_or(0);
    let Some(losses) = Losses::named(&words, count) else { return 0 };
    let counted = losses.counted(&words).unwrap_or_default();
    assert!(counted.len() <= losses.places.len() && losses.places.len() <= words.len() / 8);
    losses.places.len()
}

/// Which are on, and the command that switches them off.
fn switched_on(switches: &[(&str, bool)]) -> Option<(String, String)> {
    let on: Vec<&str> =
        switches.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let off: Vec<String> = on.iter().map(|name| format!("{name} off")).collect();
    (!on.is_empty()).then(|| (on.join(", "), off.join(" ")))
}

/// A counter of the kernel's own, which it has of every interface.
fn kernel_count(interface: &str, counter: &str) -> Option<u64> {
    let path = format!("/sys/class/net/{interface}/statistics/{counter}");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn is_loss(name: &str) -> bool {
    let is_received = name.starts_with("rx") || name.contains(".rx") || name.contains("_rx_");
    let is_whole = !name.contains(|character: char| character.is_ascii_digit());
    is_received && is_whole && LOST.iter().any(|part| name.contains(part))
}

/// The kernel writes as many names and values as the driver has at that moment, which may be more
/// than a moment ago.
fn with_room(count: usize) -> usize {
    2 * count + 256
}

fn name_of(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let name: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&name).into_owned()
}

fn number_of(words: &[u32]) -> u64 {
    let [low, high] = *words.first_chunk().expect("values are of two words");
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_known_by_the_names_that_drivers_give_them() {
        for name in [
            "rx_missed_errors",
            "rx_no_buffer_count",
            "rx_out_of_buffer",
            "rx_no_dma_resources",
            "rx_fifo_errors",
            "rx_discards_phy",
            "port.rx_dropped",
        ] {
            assert!(is_loss(name), "{name}");
        }
        for name in
            ["tx_dropped", "rx_packets", "rx_queue_0_drops", "rx_crc_errors", "rx-0.discards"]
        {
            assert!(!is_loss(name), "{name}");
        }
    }

    #[test]
    fn words_are_names_and_numbers() {
        assert_eq!(name_of(&[0x6d5f_7872, 0x6465_7373, 0]), "rx_mssed");
        assert_eq!(number_of(&[7, 1]), (1 << 32) + 7);
    }
}
