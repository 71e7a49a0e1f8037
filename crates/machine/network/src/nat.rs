//! Translation of addresses by `nf_tables`, in a table that the kernel removes with its socket.
//!
//! `linux/netfilter/nf_tables.h`: messages of one batch, of which all or none is taken. Numbers are
//! big-endian, texts end with 0.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use host::native::i32_of;
use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use crate::netlink::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST, NLMSG_ERROR, attribute, header, messages,
};
use crate::route::text;

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// `NFNL_SUBSYS_NFTABLES`, as the upper byte of a type and as the resource of a batch.
const NFTABLES: u8 = 10;
const NEWTABLE: u8 = 0;
const NEWCHAIN: u8 = 3;
const NEWRULE: u8 = 6;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;
const NLA_F_NESTED: u16 = 0x8000;

const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
/// The table goes away with the socket that made it (Linux 5.12).
const TABLE_F_OWNER: u32 = 2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const NF_INET_FORWARD: u32 = 2;
const NF_INET_POST_ROUTING: u32 = 4;
/// `NF_IP_PRI_NAT_SRC`
const SOURCE_NAT: u32 = 100;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
/// `NFT_REG_1`
const REGISTER: u32 = 1;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const META_IN_NAME: u32 = 6;
const META_OUT_NAME: u32 = 7;
const NETWORK_HEADER: u32 = 1;
/// Of the source address in the headers of IPv4 and IPv6.
const SOURCE_OFFSETS: [u32; 2] = [12, 8];
/// `IFNAMSIZ`
const NAME_BYTES: usize = 16;

/// What is translated, and what is kept as it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// Name of the table.
    pub(crate) table: &'a str,
    /// Packets from this address go out under that of the interface by which they leave.
    pub(crate) source: IpAddr,
    /// An interface that forwards only for our sake: what comes by the first goes by the second
    /// interface or nowhere.
    pub(crate) only: Option<[&'a str; 2]>,
}

/// Rules that hold as long as this value, or its process, lives.
#[derive(Debug)]
pub(crate) struct Translation {
    _owner: OwnedFd,
}

impl Translation {
    /// In the namespace that this thread is in.
    pub(crate) fn new(rules: Rules<'_>) -> io::Result<Self> {
        let (netlink, raw) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = socket_with(netlink, raw, SocketFlags::CLOEXEC, Some(NETFILTER))?;
        let wanted = messages_of(rules);
        let count = wanted.len();
        let batch = [&edge(BATCH_BEGIN)?[..], &wanted.concat(), &edge(BATCH_END)?].concat();
        sendto(&socket, &batch, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut answers = 0;
        let mut answer = vec![0; 32 << 10];
        while answers < count {
            let (len, _) = recv(&socket, &mut *answer, RecvFlags::empty())?;
            for message in messages(answer.get(..len).unwrap_or_default()) {
                let errno = message.body.first_chunk().copied().map_or(0, i32_of);
                if message.kind == NLMSG_ERROR && errno != 0 {
                    return Err(io::Error::from_raw_os_error(-errno));
                }
                answers += 1;
            }
        }
        Ok(Self { _owner: socket })
    }
}

fn messages_of(rules: Rules<'_>) -> Vec<Vec<u8>> {
    let family = if rules.source.is_ipv4() { NFPROTO_IPV4 } else { NFPROTO_IPV6 };
    let message = |kind: u8, attributes: &[u8]| message(family, kind, attributes);
    let name = text(rules.table);
    let table = [attribute(TABLE_NAME, &name), number(TABLE_FLAGS, TABLE_F_OWNER)].concat();
    let chain = |chain: &str, kind: &str, place: u32, priority: u32| {
        let hook = [number(HOOK_NUMBER, place), number(HOOK_PRIORITY, priority)].concat();
        let parts = [
            attribute(CHAIN_TABLE, &name),
            attribute(CHAIN_NAME, &text(chain)),
            nested(CHAIN_HOOK, &hook),
            attribute(CHAIN_TYPE, &text(kind)),
        ];
        message(NEWCHAIN, &parts.concat())
    };
    let rule = |chain: &str, expressions: &[Vec<u8>]| {
        let parts = [
            attribute(RULE_TABLE, &name),
            attribute(RULE_CHAIN, &text(chain)),
            nested(RULE_EXPRESSIONS, &expressions.concat()),
        ];
        message(NEWRULE, &parts.concat())
    };
    let masquerade = [from_source(rules.source), expression("masq", &[])];
    let mut all = vec![
        message(NEWTABLE, &table),
        chain("out", "nat", NF_INET_POST_ROUTING, SOURCE_NAT),
        rule("out", &masquerade),
    ];
    if let Some([from, to]) = rules.only {
        let drop_others = [
            load_name(META_IN_NAME),
            compare(EQUAL, &padded(from)),
            load_name(META_OUT_NAME),
            compare(NOT_EQUAL, &padded(to)),
            drop_packet(),
        ];
        all.push(chain("through", "filter", NF_INET_FORWARD, 0));
        all.push(rule("through", &drop_others));
    }
    all
}

/// Packets from this address.
fn from_source(address: IpAddr) -> Vec<u8> {
    let [four, six] = SOURCE_OFFSETS;
    let load = |offset: u32, len: u32| {
        let parts =
            [number(1, REGISTER), number(2, NETWORK_HEADER), number(3, offset), number(4, len)];
        expression("payload", &parts.concat())
    };
    match address {
        IpAddr::V4(address) => [load(four, 4), compare(EQUAL, &address.octets())].concat(),
        IpAddr::V6(address) => [load(six, 16), compare(EQUAL, &address.octets())].concat(),
    }
}

fn load_name(which: u32) -> Vec<u8> {
    expression("meta", &[number(1, REGISTER), number(2, which)].concat())
}

fn compare(how: u32, with: &[u8]) -> Vec<u8> {
    let value = nested(3, &attribute(DATA_VALUE, with));
    expression("cmp", &[number(1, REGISTER), number(2, how), value].concat())
}

/// The verdict `NF_DROP`, which is 0, in the register of verdicts, which is 0.
fn drop_packet() -> Vec<u8> {
    let verdict = nested(DATA_VERDICT, &number(1, 0));
    expression("immediate", &[number(1, 0), nested(2, &verdict)].concat())
}

fn expression(name: &str, data: &[u8]) -> Vec<u8> {
    let parts = [attribute(EXPRESSION_NAME, &text(name)), nested(EXPRESSION_DATA, data)];
    nested(LIST_ELEMENT, &parts.concat())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn nested(kind: u16, inside: &[u8]) -> Vec<u8> {
    attribute(kind | NLA_F_NESTED, inside)
}

/// The name of an interface as the kernel compares it.
fn padded(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    bytes.iter_mut().zip(name.bytes().take(NAME_BYTES - 1)).for_each(|(to, from)| *to = from);
    bytes
}

fn message(family: u8, kind: u8, attributes: &[u8]) -> Vec<u8> {
    let kind = u16::from_be_bytes([NFTABLES, kind]);
    let flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
    // struct nfgenmsg: family, version, resource.
    let body = [&[family, 0, 0, 0], attributes].concat();
    [header(kind, flags, body.len()).expect("rules are short"), body].concat()
}

/// The first or the last message of a batch.
fn edge(kind: u16) -> io::Result<Vec<u8>> {
    let body = [0, 0, 0, NFTABLES];
    Ok([&header(kind, NLM_F_REQUEST, body.len())?[..], &body].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enter_namespace;

    #[test]
    fn rules_are_taken_by_the_kernel_and_a_table_has_one_owner() {
        if let Err(error) = enter_namespace() {
            println!("not run: {error}");
            return;
        }
        for source in ["10.9.8.7", "fd00::7"] {
            let source = source.parse().unwrap();
            let rules = Rules { table: "wirespool_test", source, only: Some(["lo", "other"]) };
            let first = Translation::new(rules).unwrap();
            // Only its socket may touch the table, and with the socket it is gone.
            let error = Translation::new(rules).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            drop(first);
            drop(Translation::new(rules).unwrap());
        }
    }
}
