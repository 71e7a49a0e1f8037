//! What reports of several jobs say alike: what disks were qualified for.

use format::superblock::{Qualified, QualifiedBy};
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
