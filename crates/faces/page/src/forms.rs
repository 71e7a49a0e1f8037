//! What reports of several jobs say alike: what disks were qualified for.

use format::superblock::{Qualified, QualifiedBy};
use serde::Serialize;
use units::{ByteSize, hex};

use crate::text::{day, disk_rate};

/// What was measured of each member before the volume was made.
pub fn qualified(found: &Qualified) -> String {
    let by = match found.by {
        QualifiedBy::Writing => "by writing all of it",
        QualifiedBy::Places => "by writing places of it, or in another order",
        QualifiedBy::Reading => "if it writes as it reads: it was only read",
    };
    format!(
        "{} guaranteed of each member with a pool of {}, mean {}, {by}; {}, report {}",
        disk_rate(found.guaranteed_bytes_per_s),
        ByteSize(found.pool_bytes),
        disk_rate(found.mean_bytes_per_s),
        day(found.at),
        hex(&found.report),
    )
}

/// What a qualification found of each member.
#[derive(Debug, Serialize)]
pub struct QualifiedJson {
    by: &'static str,
    started_ns: i64,
    guaranteed_bytes_per_s: u64,
    mean_bytes_per_s: u64,
    pool_bytes: u64,
    longest_write_ns: u64,
    report: String,
}

impl QualifiedJson {
    /// As a superblock has it.
    pub fn new(found: &Qualified) -> Self {
        Self {
            by: match found.by {
                QualifiedBy::Writing => "writing",
                QualifiedBy::Places => "places",
                QualifiedBy::Reading => "reading",
            },
            started_ns: found.at.0,
            guaranteed_bytes_per_s: found.guaranteed_bytes_per_s,
            mean_bytes_per_s: found.mean_bytes_per_s,
            pool_bytes: found.pool_bytes,
            longest_write_ns: found.longest_write_ns,
            report: hex(&found.report),
        }
    }
}
