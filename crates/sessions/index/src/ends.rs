//! What the ends of a row have to be: addresses and ports, which are read before other columns.

use core::net::IpAddr;

use arrow_array::{Array as _, Int32Array, RecordBatch, StringArray};

use crate::columns::{ADDRESS_COLUMNS, PORT_COLUMNS};
use crate::error::{Error, Result};
use crate::filter::Needed;

/// What the ends of a row have to be.
pub(crate) struct Ends {
    /// Each, in one of its spellings, is an end.
    hosts: Vec<Vec<String>>,
    /// Each, from the first to the last, has the port of an end.
    ports: Vec<(i32, i32)>,
}

impl Ends {
    /// `None` where every row may be needed.
    pub(crate) fn of(needed: &Needed) -> Option<Self> {
        let ports =
            needed.ports.iter().map(|ports| ((*ports.start()).into(), (*ports.end()).into()));
        let hosts = needed.hosts.iter().map(texts_of).collect();
        needed.is_of_ends().then(|| Self { hosts, ports: ports.collect() })
    }

    pub(crate) fn columns(&self) -> Vec<&'static str> {
        let addresses = ADDRESS_COLUMNS.iter().filter(|_| !self.hosts.is_empty());
        let ports = PORT_COLUMNS.iter().filter(|_| !self.ports.is_empty());
        addresses.chain(ports).copied().collect()
    }

    /// Takes those rows out that have other ends.
    pub(crate) fn narrow(&self, batch: &RecordBatch, has: &mut [bool]) -> Result<()> {
        if !self.hosts.is_empty() {
            let [orig, resp] = ADDRESS_COLUMNS.map(|name| column::<StringArray>(batch, name));
            for (has, ends) in has.iter_mut().zip(orig?.iter().zip(resp?.iter())) {
                let ends = [ends.0, ends.1];
                let is_end = |text: &String| ends.contains(&Some(text.as_str()));
                *has = self.hosts.iter().all(|texts| texts.iter().any(is_end));
            }
        }
        if !self.ports.is_empty() {
            let [orig, resp] = PORT_COLUMNS.map(|name| column::<Int32Array>(batch, name));
            let (orig, resp) = (orig?, resp?);
            for &(first, last) in &self.ports {
                let is_within = |array: &Int32Array, at: usize, port: i32| {
                    first <= port && port <= last && array.is_valid(at)
                };
                let ends = orig.values().iter().zip(resp.values());
                for (at, (has, (&one, &other))) in has.iter_mut().zip(ends).enumerate() {
                    *has = *has && (is_within(orig, at, one) || is_within(resp, at, other));
                }
            }
        }
        Ok(())
    }
}

/// The column of this name, which has values of this type.
fn column<'b, A: 'static>(batch: &'b RecordBatch, column: &'static str) -> Result<&'b A> {
    let array = batch.column_by_name(column);
    array.and_then(|array| array.as_any().downcast_ref()).ok_or(Error::Column { column })
}

/// How an address may be written in a row: an IPv4 host also as the IPv6 address it is mapped to.
fn texts_of(host: &IpAddr) -> Vec<String> {
    match host {
        IpAddr::V4(ip) => vec![ip.to_string(), ip.to_ipv6_mapped().to_string()],
        IpAddr::V6(ip) => vec![ip.to_string()],
    }
}
