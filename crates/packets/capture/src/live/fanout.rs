//! Which queue a packet goes to: a program that the kernel runs for every packet of a fanout group
//! (`PACKET_FANOUT_CBPF` in packet(7)), and whose answer modulo the number of sockets is the queue.
//!
//! Invariant: the answer depends on the two addresses, and on the two ports of TCP, in a way that
//! exchanging both ends does not change. So both directions of a session are on one queue by
//! construction, and the fragments of a UDP datagram with the rest of its session. Exceptions are
//! TCP in fragments, and a session that is tunnelled by different pairs of hosts. The kernel's own
//! hash (`PACKET_FANOUT_HASH`) promises less (docs/decisions.md, Recording).
//!
//! Packets of no IP, or with headers that the program does not know, are on queue 0.

use filters::Instruction;
use libc::{
    BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IMM, BPF_IND, BPF_JA, BPF_JEQ,
    BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LSH, BPF_MEM, BPF_MISC, BPF_MUL, BPF_RET,
    BPF_RSH, BPF_ST, BPF_STX, BPF_TAX, BPF_TXA, BPF_W, BPF_X, BPF_XOR, c_int,
};

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const PPPOE: u32 = 0x8864;
const MPLS: [u32; 2] = [0x8847, 0x8848];
/// 802.1Q, 802.1ad, and what was in use before it.
const TAGS: [u32; 3] = [0x8100, 0x88a8, 0x9100];
/// Inside a tag that the kernel took out there may be two more.
const TAGS_MAX: u32 = 2;
const LABELS_MAX: u32 = 4;
/// Bottom of the label stack (RFC 3032, 2.1).
const LAST_LABEL: u32 = 0x100;
/// IP in PPP (RFC 1332, RFC 5072).
const PPP_IPV4: u32 = 0x21;
const PPP_IPV6: u32 = 0x57;
const TCP: u32 = 6;
/// Hop-by-hop options, routing, destination options: they begin with the kind of what follows, and
/// their length in 8 bytes, the first ones left out (RFC 8200, 4).
const HEADERS: [u32; 3] = [0, 43, 60];
const HEADERS_MAX: u32 = 3;
/// A fragment header is like them in form; with offset or more fragments there are no ports.
const FRAGMENT_HEADER: u32 = 44;
const FRAGMENT_OF_MORE: u32 = 0xfff9;
/// More fragments, or an offset (RFC 791, 3.1).
const FRAGMENT: u32 = 0x3fff;
const ETHERNET_TYPE: u32 = 12;
const ETHERNET_HEADER: u32 = 14;

/// Words of scratch memory: what the answer is made of, and two that calculations use.
const HASH: u32 = 0;
const VALUE: u32 = 1;
const OFFSET: u32 = 2;

/// A place in the program that others lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Outgoing,
    Type,
    Tag(u32),
    Payload,
    Pppoe,
    Label(u32),
    Ip,
    Ipv4,
    Ipv6,
    Fragment(u32),
    Header(u32),
    Ports,
    Answer,
    Unknown,
}

/// A program under construction; a jump goes forward only.
#[derive(Debug, Default)]
struct Assembler {
    instructions: Vec<Instruction>,
    /// Instructions that lead to a place once it is known.
    jumps: Vec<(usize, Place)>,
    places: Vec<(Place, usize)>,
}

impl Assembler {
    fn put(&mut self, code: u32, k: u32) {
        let code = u16::try_from(code).expect("codes have 16 bits");
        self.instructions.push(Instruction { code, jt: 0, jf: 0, k });
    }

    fn here(&mut self, place: Place) {
        self.places.push((place, self.instructions.len()));
    }

    fn go(&mut self, to: Place) {
        self.jumps.push((self.instructions.len(), to));
        self.put(BPF_JMP | BPF_JA, 0);
    }

    fn go_if(&mut self, comparison: u32, k: u32, to: Place) {
        self.jumps.push((self.instructions.len(), to));
        self.put(BPF_JMP | comparison | BPF_K, k);
    }

    /// Loads from behind the offset in X.
    fn load(&mut self, size: u32, k: u32) {
        self.put(BPF_LD | size | BPF_IND, k);
    }

    fn calculate(&mut self, operation: u32, k: u32) {
        self.put(BPF_ALU | operation | BPF_K, k);
    }

    /// Moves X on; A stays.
    fn skip(&mut self, bytes: u32) {
        self.put(BPF_ST, VALUE);
        self.put(BPF_MISC | BPF_TXA, 0);
        self.calculate(BPF_ADD, bytes);
        self.put(BPF_MISC | BPF_TAX, 0);
        self.put(BPF_LD | BPF_MEM, VALUE);
    }

    /// Moves X on by A, and has A from where it was put.
    fn advance(&mut self) {
        self.put(BPF_ALU | BPF_ADD | BPF_X, 0);
        self.put(BPF_MISC | BPF_TAX, 0);
        self.put(BPF_LD | BPF_MEM, VALUE);
    }

    /// Exclusive or of A into the hash; X stays.
    fn join(&mut self) {
        self.put(BPF_STX, OFFSET);
        self.put(BPF_LDX | BPF_MEM, HASH);
        self.put(BPF_ALU | BPF_XOR | BPF_X, 0);
        self.put(BPF_ST, HASH);
        self.put(BPF_LDX | BPF_MEM, OFFSET);
    }

    /// A multiplied, and its upper bits put into the lower ones, by which the queue is chosen.
    fn mix(&mut self, factor: u32, shift: u32) {
        self.calculate(BPF_MUL, factor);
        self.put(BPF_MISC | BPF_TAX, 0);
        self.calculate(BPF_RSH, shift);
        self.put(BPF_ALU | BPF_XOR | BPF_X, 0);
    }

    fn finish(mut self) -> Vec<Instruction> {
        for (at, to) in self.jumps {
            let place = self.places.iter().find(|(place, _)| *place == to);
            let distance = place.expect("every place is there").1 - at - 1;
            let instruction = self.instructions.get_mut(at).expect("a jump is an instruction");
            if u32::from(instruction.code) == BPF_JMP | BPF_JA {
                instruction.k = u32::try_from(distance).expect("programs are short");
            } else {
                instruction.jt = u8::try_from(distance).expect("conditional jumps are short");
            }
        }
        self.instructions
    }
}

/// The program for an interface whose packets begin with an Ethernet header, or with none.
///
/// A packet that came in is shown to it without its link-level header, one that went out with it.
pub(super) fn program(is_ethernet: bool) -> Vec<Instruction> {
    let ancillary = |what: c_int| (libc::SKF_AD_OFF + what).cast_unsigned();
    let mut it = Assembler::default();
    // The kernel takes no program that reads what it has not written.
    it.put(BPF_LD | BPF_IMM, 0);
    it.put(BPF_ST, HASH);
    if is_ethernet {
        it.put(BPF_LD | BPF_W | BPF_ABS, ancillary(libc::SKF_AD_PKTTYPE));
        it.go_if(BPF_JEQ, u32::from(libc::PACKET_OUTGOING), Place::Outgoing);
    }
    it.put(BPF_LDX | BPF_IMM, 0);
    it.put(BPF_LD | BPF_W | BPF_ABS, ancillary(libc::SKF_AD_PROTOCOL));
    it.go(Place::Type);
    it.here(Place::Outgoing);
    it.put(BPF_LDX | BPF_IMM, ETHERNET_HEADER);
    it.put(BPF_LD | BPF_H | BPF_ABS, ETHERNET_TYPE);
    it.here(Place::Type);
    tags(&mut it);
    it.here(Place::Payload);
    it.go_if(BPF_JEQ, IPV4, Place::Ipv4);
    it.go_if(BPF_JEQ, IPV6, Place::Ipv6);
    it.go_if(BPF_JEQ, PPPOE, Place::Pppoe);
    for kind in MPLS {
        it.go_if(BPF_JEQ, kind, Place::Label(0));
    }
    it.go(Place::Unknown);
    carriers(&mut it);
    addresses(&mut it);
    it.here(Place::Unknown);
    it.put(BPF_RET | BPF_K, 0);
    it.finish()
}

/// The type in A, behind tags if there are any.
fn tags(it: &mut Assembler) {
    for tag in 0..TAGS_MAX {
        for kind in TAGS {
            it.go_if(BPF_JEQ, kind, Place::Tag(tag));
        }
        it.go(Place::Payload);
        it.here(Place::Tag(tag));
        it.load(BPF_H, 2);
        it.skip(4);
    }
}

/// What carries IP and has no addresses of its own.
fn carriers(it: &mut Assembler) {
    it.here(Place::Pppoe);
    it.load(BPF_H, 6);
    it.skip(8);
    it.go_if(BPF_JEQ, PPP_IPV4, Place::Ipv4);
    it.go_if(BPF_JEQ, PPP_IPV6, Place::Ipv6);
    it.go(Place::Unknown);
    for label in 0..LABELS_MAX {
        it.here(Place::Label(label));
        it.load(BPF_W, 0);
        it.skip(4);
        it.go_if(BPF_JSET, LAST_LABEL, Place::Ip);
    }
    it.go(Place::Unknown);
    it.here(Place::Ip);
    it.load(BPF_B, 0);
    it.calculate(BPF_RSH, 4);
    it.go_if(BPF_JEQ, 4, Place::Ipv4);
    it.go_if(BPF_JEQ, 6, Place::Ipv6);
    it.go(Place::Unknown);
}

/// Addresses, and the ports of TCP, into an answer.
fn addresses(it: &mut Assembler) {
    it.here(Place::Ipv6);
    for word in (8..40).step_by(4) {
        it.load(BPF_W, word);
        it.join();
    }
    it.load(BPF_B, 6);
    it.skip(40);
    for header in 0..HEADERS_MAX {
        it.go_if(BPF_JEQ, TCP, Place::Ports);
        for kind in HEADERS {
            it.go_if(BPF_JEQ, kind, Place::Header(header));
        }
        it.go_if(BPF_JEQ, FRAGMENT_HEADER, Place::Fragment(header));
        it.go(Place::Answer);
        it.here(Place::Fragment(header));
        it.load(BPF_H, 2);
        it.go_if(BPF_JSET, FRAGMENT_OF_MORE, Place::Answer);
        it.here(Place::Header(header));
        it.load(BPF_B, 0);
        it.put(BPF_ST, VALUE);
        it.load(BPF_B, 1);
        it.calculate(BPF_ADD, 1);
        it.calculate(BPF_LSH, 3);
        it.advance();
    }
    it.go_if(BPF_JEQ, TCP, Place::Ports);
    it.go(Place::Answer);
    it.here(Place::Ipv4);
    for word in [12, 16] {
        it.load(BPF_W, word);
        it.join();
    }
    it.load(BPF_H, 6);
    it.go_if(BPF_JSET, FRAGMENT, Place::Answer);
    it.load(BPF_B, 9);
    it.put(BPF_ST, VALUE);
    it.load(BPF_B, 0);
    it.calculate(BPF_AND, 0xf);
    it.calculate(BPF_LSH, 2);
    it.advance();
    it.go_if(BPF_JEQ, TCP, Place::Ports);
    it.go(Place::Answer);
    it.here(Place::Ports);
    for half in [0, 2] {
        it.load(BPF_H, half);
        // Away from the lower bits of addresses, which alone distinguish the hosts of a network.
        it.calculate(BPF_LSH, 13);
        it.join();
    }
    it.here(Place::Answer);
    it.put(BPF_LD | BPF_MEM, HASH);
    // A finalizer with good avalanche: MurmurHash3, public domain.
    it.mix(0x85eb_ca6b, 13);
    it.mix(0xc2b2_ae35, 16);
    it.put(BPF_RET | BPF_A, 0);
}
