//! Messages of netlink(7): their header, and attributes, in the order of the machine.

use std::io;

use host::native::{i32_of, u32_bytes, u32_of};

/// `linux/netlink.h`
pub(crate) const NLM_F_REQUEST: u16 = 0x01;
pub(crate) const NLM_F_ACK: u16 = 0x04;
pub(crate) const NLM_F_EXCL: u16 = 0x200;
pub(crate) const NLM_F_DUMP: u16 = 0x300;
pub(crate) const NLM_F_CREATE: u16 = 0x400;
pub(crate) const NLMSG_ERROR: u16 = 2;
pub(crate) const NLMSG_DONE: u16 = 3;
/// struct nlmsghdr: length, type, flags, sequence number, port.
pub(crate) const MESSAGE_HEADER: usize = 16;
/// Bits of an attribute's type that number it; the others are flags.
const TYPE_BITS: u16 = 0x3fff;
/// struct rtattr: length and type.
const ATTRIBUTE_HEADER: usize = 4;

/// The header before a body of so many bytes. Its sequence number and port are 0: one question is
/// under way at a time.
pub(crate) fn header(kind: u16, flags: u16, body_len: usize) -> io::Result<Vec<u8>> {
    let len = u32::try_from(MESSAGE_HEADER + body_len).map_err(io::Error::other)?;
    Ok([&u32_bytes(len)[..], &short(kind), &short(flags), &[0; 8]].concat())
}

/// A message of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    pub(crate) body: &'a [u8],
}

/// The messages of a datagram; what is no whole message ends them.
pub(crate) fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    core::iter::from_fn(move || {
        let len = usize::try_from(u32_of(*rest.first_chunk()?)).ok()?;
        let kind = from_short(*rest.get(4..)?.first_chunk()?);
        let body = rest.get(MESSAGE_HEADER..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, body })
    })
}

/// The error number of an answer that is an error, negative as the kernel gives it; 0 is an
/// acknowledgement.
pub(crate) fn error_in(answer: &[u8]) -> Option<i32> {
    let first = messages(answer).next()?;
    let errno = first.body.first_chunk().copied()?;
    (first.kind == NLMSG_ERROR).then(|| i32_of(errno))
}

/// The error that an answer's number means, which is negative as the kernel gives it.
pub(crate) fn refusal(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number.checked_neg().unwrap_or(i32::MAX))
}

/// struct rtattr with its value, padded to four bytes.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(ATTRIBUTE_HEADER + value.len()).expect("names and numbers are short");
    let mut bytes = [short(len), short(kind)].concat();
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Attributes with their kinds; what is no whole attribute ends them.
pub(crate) fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let [len_low, len_high, kind_low, kind_high] = *rest.first_chunk()?;
        let len = usize::from(from_short([len_low, len_high]));
        let kind = from_short([kind_low, kind_high]) & TYPE_BITS;
        let value = rest.get(ATTRIBUTE_HEADER..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The text of an attribute, up to its zero.
pub(crate) fn text_of(value: &[u8]) -> String {
    let text = value.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

pub(crate) fn find_attribute(rest: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(rest).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

#[expect(clippy::host_endian_bytes, reason = "the kernel of this machine is asked")]
pub(crate) fn short(value: u16) -> [u8; 2] {
    value.to_ne_bytes()
}

#[expect(clippy::host_endian_bytes, reason = "the kernel of this machine answers")]
fn from_short(bytes: [u8; 2]) -> u16 {
    u16::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_behind_others_and_not_beyond_the_end() {
        let two = [attribute(7, &[1, 2, 3]), attribute(0x8017, &[4])].concat();
        assert_eq!(find_attribute(&two, 7), Some(&[1, 2, 3][..]));
        assert_eq!(find_attribute(&two, 23), Some(&[4][..]));
        assert_eq!(find_attribute(&two, 9), None);
        assert_eq!(find_attribute(two.get(..9).unwrap(), 23), None);
        assert_eq!(find_attribute(&[2, 0, 7, 0], 7), None);
    }

    #[test]
    fn messages_follow_each_other_and_a_cut_one_is_none() {
        let one =
            |kind, body: &[u8]| [header(kind, 0, body.len()).unwrap(), body.to_vec()].concat();
        let two = [one(20, &[1, 2, 3, 4]), one(NLMSG_ERROR, &[0xff; 4])].concat();
        let kinds = |bytes: &[u8]| messages(bytes).map(|found| found.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&two), [20, NLMSG_ERROR]);
        assert_eq!(kinds(&two[..two.len() - 1]), [20]);
        assert_eq!(error_in(&two), None);
        assert_eq!(error_in(&two[MESSAGE_HEADER + 4..]), Some(-1));
        assert!(kinds(&[3; 16]).is_empty());
    }
}
