//! What targets share. The bodies in files of their own are also run by the ordinary tests of the
//! crates, on the inputs in `seeds`.

pub mod anonymise;
pub mod image;
pub mod index_file;
pub mod texts;

pub mod oracles;

use app::{Budget, Datagram, Interest, Search, Segment, Side};
use wire::{Names, Protocol};

const ROOM: usize = 256 << 10;

/// Bytes of memory that the payloads of one session may ask for: heads, early segments and names;
/// and for each byte of them, that is for what a parser needs while it reads one.
const MEMORY: (usize, usize) = (1 << 20, 1024);

/// [`read_payloads`], within memory and work that grow with the input.
pub fn payloads(proto: Protocol, ports: (u16, u16), input: &[u8]) {
    oracles::within(input, MEMORY, |input| read_payloads(proto, ports, input));
    oracles::linear(input, |input| read_payloads(proto, ports, input));
}

/// Payloads of one session through every parser that its ports and its content name; what is held
/// is given back.
///
/// The input: for each payload a byte of flags (1 responder, 2 cut, 4 bytes before it are missing,
/// 8 seen before), its length in two bytes, itself.
///
/// # Panics
/// A list or a value is longer than it may be, or room is not given back.
fn read_payloads(proto: Protocol, ports: (u16, u16), input: &[u8]) {
    let is_tcp = proto == Protocol::TCP;
    let mut interest = Interest::of(proto);
    let mut budget = Budget::new(ROOM, ROOM);
    let mut search: Option<Box<Search>> = None;
    let mut sent = [0_u32; 2];
    let mut time_ns = 0;
    let mut rest = input;
    while let Some((&[flags, high, low], after)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([high, low])).min(after.len());
        let (payload, after) = after.split_at(len);
        rest = after;
        time_ns += 1000;
        let side = if flags & 1 == 0 { Side::Orig } else { Side::Resp };
        if interest.is_none() {
            break;
        }
        if !is_tcp {
            let datagram = Datagram { side, time_ns, ports, payload };
            app::datagram(&mut search, &mut interest, &datagram, &mut budget);
            continue;
        }
        let len = u32::try_from(len).unwrap();
        let place = &mut sent[usize::from(flags & 1)];
        let is_ahead = flags & 4 != 0;
        if is_ahead {
            *place = place.wrapping_add(len);
        }
        if flags & 8 != 0 {
            *place = place.wrapping_sub(2 * len);
        }
        let is_truncated = flags & 2 != 0;
        let segment =
            Segment { side, time_ns, start: *place, payload, is_truncated, is_ahead, ports };
        app::segment(&mut search, &mut interest, &segment, &mut budget);
        *place = place.wrapping_add(len);
    }
    if let Some(search) = &mut search {
        search.finish(&mut budget);
        bounded(&search.names);
    }
    assert_eq!([budget.heads.free_bytes, budget.names.free_bytes], [ROOM; 2]);
}

fn bounded(names: &Names) {
    let lists = [
        &names.alpn,
        &names.http_host,
        &names.http_method,
        &names.http_path,
        &names.http_user_agent,
        &names.http_content_type,
        &names.dns_names,
        &names.dns_answers,
        &names.app_detail,
    ];
    for list in lists {
        assert!(list.len() <= 32 && list.iter().all(|text| text.len() <= 300));
    }
}
