//! A DNS query and its answer.

use std::sync::Arc;

use format::session_row::SessionRow;
use units::Timestamp;
use wire::{Address, FiveTuple, Protocol};

pub(crate) const DNS_PORT: u16 = 53;

/// A query and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) client: Address,
    pub(crate) server: Address,
    pub(crate) proto: Protocol,
    pub(crate) name: Arc<str>,
    pub(crate) kind: u16,
    /// `None` where no answer came.
    pub(crate) rcode: Option<u16>,
    /// From the query to the answer, where both were seen.
    pub(crate) latency_ns: Option<u64>,
}

impl Exchange {
    /// Bytes that it takes; its name counts fully, though others may have the same.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.name.len() + 2 * size_of::<usize>()
    }

    pub(crate) fn new(
        tuple: &FiveTuple,
        (name, kind): (Arc<str>, u16),
        rcode: Option<u16>,
        latency_ns: Option<u64>,
    ) -> Self {
        let FiveTuple { orig: client, resp: server, proto, .. } = *tuple;
        Self { client, server, proto, name, kind, rcode, latency_ns }
    }

    /// As the row of a session, for a query.
    pub(crate) fn row(&self) -> SessionRow {
        let tuple = FiveTuple {
            orig: self.client,
            resp: self.server,
            orig_port: 0,
            resp_port: DNS_PORT,
            proto: self.proto,
        };
        let mut row = SessionRow::new(tuple, Timestamp::default());
        row.orig.packets = 1;
        row.resp.packets = u64::from(self.rcode.is_some());
        row.app =
            wire::App::of_name("dns").map(|app| wire::Recognised { app, by: wire::AppBy::Content });
        row.names.dns_names.push(self.name.to_string());
        row.names.dns_types.push(self.kind);
        row.names.dns_rcodes.extend(self.rcode);
        row.names.dns_rtt_ns = self.latency_ns;
        row
    }
}
