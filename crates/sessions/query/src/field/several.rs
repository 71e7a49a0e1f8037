//! Values that come of both sides of a session, or of what its segment says.

use format::session_row::SourceNames;
use wire::TcpOptions;

use crate::field::reading::{Found, Reading, Row};

/// An option holds for a connection when both SYNs carry it (RFC 2018, RFC 7323). One SYN alone can
/// only deny it.
pub(super) fn agreed(
    row: &Row<'_>,
    option: fn(&TcpOptions) -> bool,
    found: &mut Found<'_>,
) -> bool {
    let [orig, resp] =
        [&row.slice.orig, &row.slice.resp].map(|side| side.syn_options.as_ref().map(option));
    let agreed = match (orig, resp) {
        (Some(orig), Some(resp)) => Some(orig && resp),
        (Some(false), None) | (None, Some(false)) => Some(false),
        _ => None,
    };
    agreed.is_some_and(|agreed| found(Reading::Flag(agreed)))
}

/// A name of where the row's packets were recorded.
pub(super) fn source_name(
    row: &Row<'_>,
    read: fn(&SourceNames) -> Option<&str>,
    found: &mut Found<'_>,
) -> bool {
    let name = row.slice.source.as_deref().and_then(read);
    name.is_some_and(|name| found(Reading::Text(name)))
}
