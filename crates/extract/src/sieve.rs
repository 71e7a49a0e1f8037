//! Which packets of the sessions selected are wanted: those that pass a filter and have something
//! in their payload.

use capture::PacketFilter;
use format::piece::StoredPacket;
use wire::{Decoded, LinkType, decode};

use crate::Error;
use crate::payload::Pattern;
use crate::request::Request;

/// What packets have to pass.
#[derive(Debug)]
pub(crate) struct Sieve {
    filter: Option<PacketFilter>,
    pub(crate) payload: Option<Pattern>,
}

impl Sieve {
    pub(crate) fn new(request: &Request<'_>) -> Self {
        Self { filter: request.packet_filter.clone(), payload: request.payload.clone() }
    }

    /// Whether a packet passes; `decoded` is what it is, where that is known already.
    pub(crate) fn passes<'p>(
        &mut self,
        link_type: LinkType,
        packet: &StoredPacket<'p>,
        decoded: Option<&Decoded<'p>>,
    ) -> Result<bool, Error> {
        let StoredPacket { data, original_len, .. } = *packet;
        if let Some(filter) = &mut self.filter
            && !filter.accepts_bytes(link_type, data, original_len).map_err(Error::Filter)?
        {
            return Ok(false);
        }
        let Some(pattern) = &self.payload else { return Ok(true) };
        let decoded = decoded.copied();
        let decoded = decoded.unwrap_or_else(|| decode(link_type, data, original_len));
        // What has no payload that is known as one is searched whole.
        let has_ip = decoded.ip_len > 0;
        Ok(pattern.is_in(if has_ip { decoded.payload } else { data }))
    }
}
