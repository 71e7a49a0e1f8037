//! Fields and orders of sessions as they are written, and the zone that times are shown in.

use ::found::SortBy;
use page::text::Zone;
use query::Field;

use crate::failure::Usage;
use crate::progress::say;

/// The zone of tables. One that this machine does not know is said: its times would be taken for
/// those of the zone.
pub fn zone_of(is_local: bool) -> Zone {
    if !is_local {
        return Zone::Utc;
    }
    if let Some(name) = host::unknown_zone() {
        say(&format!("--local: TZ is {name}, a time zone that is not known here: times are UTC"));
    }
    Zone::Local(host::local_offset_s)
}

/// An order: `FIELD`, `FIELD:asc` or `FIELD:desc`.
///
/// # Errors
/// When it is none.
pub fn sort_by(text: &str) -> Result<SortBy, Usage> {
    let (name, is_descending) = match text.rsplit_once(':') {
        Some((name, "desc")) => (name, true),
        Some((name, "asc")) => (name, false),
        Some((_, order)) => {
            return Err(Usage(format!("{order:?} is no order; write asc or desc")));
        }
        None => (text, false),
    };
    Ok(SortBy { field: field(name)?, is_descending })
}

/// The field of this name.
///
/// # Errors
/// When there is none, with what was probably meant.
pub fn field(name: &str) -> Result<&'static Field, Usage> {
    Field::find(name).ok_or_else(|| no_field(name))
}

/// What is said of a name that no field has.
pub fn no_field(name: &str) -> Usage {
    if name.eq_ignore_ascii_case("stored") {
        let text =
            "STORED is a column of the table that has no --columns, and no field of sessions";
        return Usage(text.to_owned());
    }
    let meant = Field::meant_by(name);
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
    Usage(format!("there is no field {name:?}{meant} (wirespool fields lists them)"))
}
