//! What ends and counters of a row have to be: their columns are read before others, so that only
//! the rows that are left are made of all that is asked for.

use core::net::IpAddr;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray,
};

use crate::bounds::Left;
use crate::columns::{ADDRESS_COLUMNS, PART_COLUMNS, PORT_COLUMNS};
use crate::error::{Error, Result};
use crate::filter::{Needed, Sum};

/// What a row has to be.
pub(crate) struct Narrow<'n> {
    /// Each, in one of its spellings, is an end.
    hosts: Vec<Vec<String>>,
    /// Each, from the first to the last, has the port of an end.
    ports: Vec<(i32, i32)>,
    /// Of each sum of columns there is at least so much, where the row is its whole session.
    sums: &'n [Sum],
    /// No row that is its whole session has them all.
    is_for_parts: bool,
}

impl<'n> Narrow<'n> {
    /// In a row group of which bounds leave these rows. `None` where every row may be needed.
    pub(crate) fn of(needed: &'n Needed, left: Left) -> Option<Self> {
        let ports =
            needed.ports.iter().map(|ports| ((*ports.start()).into(), (*ports.end()).into()));
        let hosts: Vec<_> = needed.hosts.iter().map(texts_of).collect();
        let (ports, is_for_parts) = (ports.collect(), left != Left::Any);
        let narrow = Self { hosts, ports, sums: &needed.sums, is_for_parts };
        let is_any = narrow.hosts.is_empty() && narrow.ports.is_empty() && narrow.sums.is_empty();
        (!is_any).then_some(narrow)
    }

    pub(crate) fn columns(&self) -> Vec<&'static str> {
        let addresses = ADDRESS_COLUMNS.iter().filter(|_| !self.hosts.is_empty());
        let ports = PORT_COLUMNS.iter().filter(|_| !self.ports.is_empty());
        let of_session = PART_COLUMNS.iter().filter(|_| !self.sums.is_empty());
        let sums = self.sums.iter().filter(|_| !self.is_for_parts);
        let summed = sums.flat_map(|(columns, _)| *columns);
        addresses.chain(ports).chain(of_session).chain(summed).copied().collect()
    }

    /// Takes out the rows that are not such; `has` is one for each row.
    pub(crate) fn narrow(&self, batch: &RecordBatch, has: &mut [bool]) -> Result<()> {
        self.by_hosts(batch, has)?;
        self.by_ports(batch, has)?;
        self.by_sums(batch, has)
    }

    fn by_hosts(&self, batch: &RecordBatch, has: &mut [bool]) -> Result<()> {
        if self.hosts.is_empty() {
            return Ok(());
        }
        let [orig, resp] = ADDRESS_COLUMNS.map(|name| column::<StringArray>(batch, name));
        for (has, ends) in has.iter_mut().zip(orig?.iter().zip(resp?.iter())) {
            let ends = [ends.0, ends.1];
            let is_end = |text: &String| ends.contains(&Some(text.as_str()));
            *has = *has && self.hosts.iter().all(|texts| texts.iter().any(is_end));
        }
        Ok(())
    }

    fn by_ports(&self, batch: &RecordBatch, has: &mut [bool]) -> Result<()> {
        if self.ports.is_empty() {
            return Ok(());
        }
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
        Ok(())
    }

    fn by_sums(&self, batch: &RecordBatch, has: &mut [bool]) -> Result<()> {
        if self.sums.is_empty() {
            return Ok(());
        }
        let [age, continues] = PART_COLUMNS;
        let ages = column::<Int64Array>(batch, age)?.values();
        let continues = column::<BooleanArray>(batch, continues)?.values();
        let is_part: Vec<bool> =
            ages.iter().zip(continues).map(|(&age, goes_on)| goes_on || age > 0).collect();
        if self.is_for_parts {
            has.iter_mut().zip(is_part).for_each(|(has, is_part)| *has = *has && is_part);
            return Ok(());
        }
        'sums: for &(columns, least) in self.sums {
            let mut sums = vec![0_u64; batch.num_rows()];
            for &name in columns {
                // Files of earlier versions lack some: what a row has there is found out later.
                let Some(array) = batch.column_by_name(name) else { continue 'sums };
                add(&mut sums, array).ok_or(Error::Column { column: name })?;
            }
            for ((has, is_part), sum) in has.iter_mut().zip(&is_part).zip(sums) {
                *has = *has && (*is_part || sum >= least);
            }
        }
        Ok(())
    }
}

/// Adds the values of a column of numbers; no sum ever gets too small. `None` for other columns.
fn add(sums: &mut [u64], array: &ArrayRef) -> Option<()> {
    if let Some(wide) = array.as_primitive_opt::<Int64Type>() {
        add_all(sums, wide.values());
    } else {
        add_all(sums, array.as_primitive_opt::<Int32Type>()?.values());
    }
    Some(())
}

fn add_all<T: Copy + TryInto<u64>>(sums: &mut [u64], values: &[T]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        // A negative number is one that was too large, or a time that ran backwards.
        *sum = sum.saturating_add((*value).try_into().unwrap_or(u64::MAX));
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
