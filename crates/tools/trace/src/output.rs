//! Packets as pcapng, each with its process.

use std::io::{self, Write};

use capture::{Counters, Interface, Packet};
use format::pcapng::{
    EnhancedPacketFields, OptionCode, put_comment, put_enhanced_packet, put_interface_description,
    put_interface_statistics, put_option, put_own_section_header,
};
use network::sockets::Owner;
use units::Timestamp;

/// `if_tsresol` of nanoseconds.
const NANOSECONDS: u8 = 9;

/// One pcapng section.
#[derive(Debug)]
pub struct Output<W: Write> {
    to: W,
    buffer: Vec<u8>,
}

impl<W: Write> Output<W> {
    /// Begins the section, which says in a comment what it is of.
    pub fn new(to: W, of: &str, interfaces: &[Interface]) -> io::Result<Self> {
        let mut buffer = Vec::new();
        put_own_section_header(&mut buffer, of);
        for interface in interfaces {
            let mut options = Vec::new();
            put_option(&mut options, OptionCode::INTERFACE_NAME, interface.name.as_bytes());
            put_option(&mut options, OptionCode::INTERFACE_RESOLUTION, &[NANOSECONDS]);
            interface.put_options(&mut options);
            let Interface { link_type, snaplen, .. } = *interface;
            put_interface_description(&mut buffer, link_type, snaplen, &options);
        }
        let mut output = Self { to, buffer };
        output.flush()?;
        Ok(output)
    }

    /// Adds a packet; it is written with [`Self::flush`].
    pub fn packet(&mut self, packet: &Packet<'_>, owner: Option<&Owner>) {
        let mut options = packet.options.to_vec();
        if let Some(owner) = owner {
            put_comment(&mut options, &owner.to_string());
            // The thread is not known: the first one has the number of the process.
            let number = owner.process.to_le_bytes();
            let value = [number, number].concat();
            put_option(&mut options, OptionCode::PACKET_PROCESS_THREAD, &value);
        }
        let fields = EnhancedPacketFields {
            interface: packet.interface,
            time: units_of(packet.timestamp),
            original_len: packet.original_len,
            options: &options,
        };
        put_enhanced_packet(&mut self.buffer, &fields, packet.parts());
    }

    /// Writes what was added.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.buffer)?;
        self.buffer.clear();
        self.to.flush()
    }

    /// Ends the section with what each interface counted.
    pub fn finish(mut self, counters: &[Counters], at: Timestamp) -> io::Result<W> {
        for (interface, counters) in (0..).zip(counters) {
            let mut options = Vec::new();
            for (code, count) in [
                (OptionCode::STATISTICS_RECEIVED, Some(counters.received)),
                (OptionCode::STATISTICS_INTERFACE_DROPS, counters.interface_drops),
                (OptionCode::STATISTICS_KERNEL_DROPS, Some(counters.kernel_drops)),
            ] {
                if let Some(count) = count {
                    put_option(&mut options, code, &count.to_le_bytes());
                }
            }
            put_interface_statistics(&mut self.buffer, interface, units_of(at), &options);
        }
        self.flush()?;
        Ok(self.to)
    }
}

fn units_of(time: Timestamp) -> u64 {
    // Nothing is captured before 1970.
    u64::try_from(time.0).unwrap_or(0)
}
