//! Which packets of the sessions selected are wanted: those that pass a filter and have something
//! in their payload.

use filters::PacketFilter;
use format::piece::StoredPacket;
use wire::{Decoded, LinkType, decode};

use crate::Error;
use crate::payload::Pattern;
use crate::request::Request;

/// What packets have to pass.
#[derive(Debug)]
pub(crate) struct Sieve {
    filter: Option<PacketFilter>,
    /// Link types for which the filter means nothing, and packets of these: they do not pass.
    foreign: Vec<LinkType>,
    pub(crate) unjudged_packets: u64,
    pub(crate) payload: Option<Pattern>,
}

impl Sieve {
    pub(crate) fn new(request: &Request<'_>) -> Self {
        let (filter, payload) = (request.packet_filter.clone(), request.payload.clone());
        Self { filter, foreign: Vec::new(), unjudged_packets: 0, payload }
    }

    /// Whether a packet passes; `decoded` is what it is, where that is known already.
    pub(crate) fn passes<'p>(
        &mut self,
        link_type: LinkType,
        packet: &StoredPacket<'p>,
        decoded: Option<&Decoded<'p>>,
    ) -> Result<bool, Error> {
        let StoredPacket { data, original_len, .. } = *packet;
        if !self.passes_filter(link_type, data, original_len)? {
            return Ok(false);
        }
        let Some(pattern) = &self.payload else { return Ok(true) };
        let decoded = decoded.copied();
        let decoded = decoded.unwrap_or_else(|| decode(link_type, data, original_len));
        // What has no payload that is known as one is searched whole.
        let has_ip = decoded.ip_len > 0;
        Ok(pattern.is_in(if has_ip { decoded.payload } else { data }))
    }

    /// A filter that means nothing for a link type says nothing of its packets: they are counted.
    fn passes_filter(
        &mut self,
        link_type: LinkType,
        data: &[u8],
        original_len: u32,
    ) -> Result<bool, Error> {
        let Some(filter) = &mut self.filter else { return Ok(true) };
        if !self.foreign.contains(&link_type) {
            match filter.accepts_bytes(link_type, data, original_len) {
                Err(filters::Error::Wrong { .. }) => self.foreign.push(link_type),
                other => return other.map_err(Error::Filter),
            }
        }
        self.unjudged_packets = self.unjudged_packets.saturating_add(1);
        Ok(false)
    }
}
