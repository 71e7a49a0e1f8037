//! Captures as files: pcap, and pcapng (draft-ietf-opsawg-pcapng).

use crate::scene::{Frame, Port, Scene};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// Numbers in the byte order of a file.
struct Writer {
    is_big_endian: bool,
    bytes: Vec<u8>,
}

impl Writer {
    fn u16(&mut self, number: u16) {
        let big = number.to_be_bytes();
        self.bytes.extend(if self.is_big_endian { big } else { number.to_le_bytes() });
    }

    fn u32(&mut self, number: u32) {
        let big = number.to_be_bytes();
        self.bytes.extend(if self.is_big_endian { big } else { number.to_le_bytes() });
    }

    /// A block of pcapng: its type, its length before and behind its body.
    fn block(&mut self, kind: u32, body: &[u8]) {
        let len = low32(12 + body.len().next_multiple_of(4));
        self.u32(kind);
        self.u32(len);
        self.padded(body);
        self.u32(len);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn of(is_big_endian: bool) -> Self {
        Self { is_big_endian, bytes: Vec::new() }
    }
}

pub(crate) fn low32(number: usize) -> u32 {
    u32::try_from(number).expect("a length in 32 bits")
}

/// A capture's bytes.
pub(crate) fn bytes_of(scene: &Scene) -> Vec<u8> {
    if scene.form.is_pcapng { pcapng(scene) } else { pcap(scene) }
}

/// A time in the digits of an interface.
pub(crate) fn ticks(port: Port, time_ns: u64) -> u64 {
    time_ns / 10_u64.pow(9 - port.digits)
}

fn pcap(scene: &Scene) -> Vec<u8> {
    let mut writer = Writer::of(scene.form.is_big_endian);
    let port = scene.ports[0];
    writer.u32(if port.digits == 9 { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
    writer.u16(2);
    writer.u16(4);
    writer.u32(0);
    writer.u32(0);
    writer.u32(low32(scene.form.snaplen));
    writer.u32(port.link.number().into());
    for frame in &scene.frames {
        let second = 10_u64.pow(port.digits);
        let ticks = ticks(port, frame.time_ns);
        for part in [ticks / second, ticks % second] {
            writer.u32(u32::try_from(part).expect("a time before 2106"));
        }
        writer.u32(low32(scene.kept(frame)));
        writer.u32(low32(frame.bytes.len()));
        writer.bytes.extend(&frame.bytes[..scene.kept(frame)]);
    }
    writer.bytes
}

fn pcapng(scene: &Scene) -> Vec<u8> {
    let mut writer = Writer::of(scene.form.is_big_endian);
    section(&mut writer, scene);
    for (kind, body) in &scene.blocks {
        writer.block(*kind, body);
    }
    for (number, frame) in scene.frames.iter().enumerate() {
        if scene.sections.contains(&number) {
            section(&mut writer, scene);
        }
        packet(&mut writer, scene, frame);
    }
    writer.bytes
}

fn section(writer: &mut Writer, scene: &Scene) {
    const MAGIC: u32 = 0x1a2b_3c4d;
    let of = || Writer::of(scene.form.is_big_endian);
    let mut body = of();
    body.u32(MAGIC);
    body.u16(1);
    body.u16(0);
    // Of unknown length.
    body.u32(u32::MAX);
    body.u32(u32::MAX);
    writer.block(SECTION, &body.bytes);
    for (number, port) in scene.ports.iter().enumerate() {
        let mut body = of();
        body.u16(port.link.number());
        body.u16(0);
        body.u32(low32(scene.form.snaplen));
        let name = format!("port{number}");
        let digits = u8::try_from(port.digits).expect("a digit");
        for (code, value) in [(2, name.as_bytes()), (9, &[digits][..])] {
            body.u16(code);
            body.u16(u16::try_from(value.len()).expect("short"));
            body.padded(value);
        }
        body.u32(0);
        writer.block(INTERFACE, &body.bytes);
    }
}

fn packet(writer: &mut Writer, scene: &Scene, frame: &Frame) {
    let mut body = Writer::of(scene.form.is_big_endian);
    let ticks = ticks(scene.ports[frame.interface], frame.time_ns);
    body.u32(low32(frame.interface));
    body.u32(u32::try_from(ticks >> 32).expect("the upper half"));
    body.u32(u32::try_from(ticks & 0xffff_ffff).expect("the lower half"));
    body.u32(low32(scene.kept(frame)));
    body.u32(low32(frame.bytes.len()));
    body.padded(&frame.bytes[..scene.kept(frame)]);
    writer.block(ENHANCED_PACKET, &body.bytes);
}
