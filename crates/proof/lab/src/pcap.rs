//! The classic pcap file, written and read without the product's own code.
//!
//! Layout: draft-ietf-opsawg-pcap. A header of 24 bytes, then for each packet a header of 16 bytes
//! and its bytes; the magic number says byte order and unit of time.

use std::io::{self, ErrorKind, Read, Write};

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const ETHERNET: u32 = 1;
const CAPTURED_MAX: usize = 1 << 18;

/// Begins a file of Ethernet frames with times in nanoseconds.
pub(crate) fn write_header(out: &mut dyn Write) -> io::Result<()> {
    let mut header = Vec::from(MAGIC_NANOSECONDS.to_le_bytes());
    header.extend([2, 0, 4, 0]);
    header.extend([0; 8]);
    header.extend(65_535_u32.to_le_bytes());
    header.extend(ETHERNET.to_le_bytes());
    out.write_all(&header)
}

/// Adds a packet at `seconds` since 1970 and `nanos`.
pub(crate) fn write_packet(
    out: &mut dyn Write,
    (seconds, nanos): (u32, u32),
    frame: &[u8],
) -> io::Result<()> {
    let length = u32::try_from(frame.len()).expect("a frame is short").to_le_bytes();
    let mut packet = Vec::from(seconds.to_le_bytes());
    packet.extend(nanos.to_le_bytes());
    packet.extend(length);
    packet.extend(length);
    packet.extend(frame);
    out.write_all(&packet)
}

/// Hands each packet of a little-endian file to `take`.
pub(crate) fn read(input: &mut dyn Read, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut header = [0; 24];
    input.read_exact(&mut header)?;
    let magic = little(&header, 0);
    if magic != MAGIC_NANOSECONDS && magic != MAGIC_MICROSECONDS {
        return Err(io::Error::new(ErrorKind::InvalidData, "not a little-endian pcap file"));
    }
    let mut packet = Vec::new();
    while let Some(captured) = next_length(input)? {
        packet.resize(captured, 0);
        input.read_exact(&mut packet)?;
        take(&packet);
    }
    Ok(())
}

/// Reads a packet's header; `None` at the end of the file.
fn next_length(input: &mut dyn Read) -> io::Result<Option<usize>> {
    let mut header = Vec::new();
    input.take(16).read_to_end(&mut header)?;
    if header.is_empty() {
        return Ok(None);
    }
    let captured = usize::try_from(little(&header, 8)).unwrap_or(usize::MAX);
    if header.len() < 16 || captured > CAPTURED_MAX {
        return Err(io::Error::new(ErrorKind::InvalidData, "a packet is cut off or too long"));
    }
    Ok(Some(captured))
}

fn little(bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..at + 4).and_then(|field| field.try_into().ok());
    field.map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back_and_a_cut_file_is_an_error() {
        let mut file = Vec::new();
        write_header(&mut file).unwrap();
        write_packet(&mut file, (7, 8), &[1, 2, 3]).unwrap();
        write_packet(&mut file, (7, 9), &[4]).unwrap();
        let packets = |bytes: &[u8]| {
            let mut packets = Vec::new();
            let result = read(&mut &*bytes, &mut |packet| packets.push(packet.to_vec()));
            result.map(|()| packets)
        };
        assert_eq!(packets(&file).unwrap(), [vec![1, 2, 3], vec![4]]);
        for length in (0..file.len()).filter(|length| ![24, 43].contains(length)) {
            assert!(packets(&file[..length]).is_err(), "{length}");
        }
    }
}
