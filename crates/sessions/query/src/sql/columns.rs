//! Which columns of an archive have a field's values.

use format::kind::Kind;
use format::stored_field::{Access, StoredField};

use crate::field::Field;
use crate::scope::summands;

/// A column, or what is computed of some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Column {
    /// The expression.
    pub(super) sql: String,
    /// It has several values.
    pub(super) is_list: bool,
}

impl Column {
    fn one(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), is_list: false }
    }

    /// A column of this name.
    fn named(name: &str) -> Self {
        let stored = StoredField::find(name);
        let is_list = stored
            .is_some_and(|field| matches!(field.access, Access::Texts(..) | Access::Numbers(..)));
        Self { sql: name.to_owned(), is_list }
    }
}

/// Where the values of a field are: in any of these.
pub(super) fn columns(field: &'static Field) -> Vec<Column> {
    let several = |names: &[&str]| names.iter().map(|name| Column::named(name)).collect();
    let of_tunnels = |kinds: &str| {
        vec![Column::one(format!("CASE WHEN tunnel IN ({kinds}) THEN tunnel_id END"))]
    };
    match field.name {
        "host" => several(&["orig_ip", "resp_ip"]),
        "port" => several(&["orig_port", "resp_port"]),
        "name" => several(&["sni", "http_host", "dns_names"]),
        "vlan" => several(&["vlan", "vlan_inner"]),
        "vni" => of_tunnels("'vxlan', 'vxlan-gpe', 'geneve'"),
        "teid" => of_tunnels("'gtp-u'"),
        "session_age_ns" => vec![Column::one("GREATEST(start_ns - session_start_ns, 0)")],
        "duration_ns" => vec![Column::one("GREATEST(duration_ns, 0)")],
        "tcp_sack" => agreed("sack_permitted"),
        "tcp_timestamps" => agreed("timestamps"),
        name => match summands(field) {
            Some(columns @ [_, _, ..]) if is_sum(field) => {
                vec![Column::one(format!("({})", columns.join(" + ")))]
            }
            _ => vec![Column::named(name)],
        },
    }
}

/// Both SYNs have it; no as soon as one does not.
fn agreed(option: &str) -> Vec<Column> {
    vec![Column::one(format!("(orig_syn_{option} AND resp_syn_{option})"))]
}

fn is_sum(field: &Field) -> bool {
    matches!(field.kind, Kind::Count | Kind::Bytes)
}

/// What an engine can order by as a search here does: one number.
pub(super) fn number(field: &'static Field) -> Option<String> {
    let is_number = !matches!(
        field.kind,
        Kind::Name
            | Kind::Text
            | Kind::Address
            | Kind::Flag
            | Kind::App
            | Kind::State
            | Kind::CommunityId
    );
    match columns(field).as_slice() {
        [one] if is_number && !one.is_list && !field.needs_atlas() => Some(one.sql.clone()),
        _ => None,
    }
}
