//! The query of all sessions that may name somebody: what a data subject is known by may stand in
//! any field.

use core::net::IpAddr;

use format::kind::Kind;

use crate::field::FIELDS;
use crate::operator::MENTIONS;
use crate::pattern::Pattern;

/// The query of the sessions in which `term` is an address, or a part of any name or text. An IP
/// address is looked for among the addresses of sessions and of their tunnels, and by itself in
/// each field of text: 10.0.0.12 is not 10.0.0.1. Six bytes with colons are a station. Everything
/// else is looked for in each field of text, in either case where the field does not tell them
/// apart.
pub fn subject(term: &str) -> String {
    let term = term.trim();
    let address: Option<IpAddr> = term.parse().ok();
    let mut any = Vec::new();
    if let Some(address) = address {
        any.push(format!("host {address}"));
        let more = FIELDS.iter().filter(|it| it.kind == Kind::Address && !is_of_ends(it.name));
        any.extend(more.map(|field| format!("{} = {address}", field.name)));
    }
    if is_station(term) {
        any.push(format!("ether host {term}"));
    }
    let condition = match address {
        Some(address) => format!("{MENTIONS} {}", Pattern::exactly(&address.to_string())),
        None => format!("= {}", Pattern::containing(term)),
    };
    let texts = FIELDS.iter().filter(|field| {
        matches!(field.kind, Kind::Name | Kind::Text)
            && !field.needs_atlas()
            && !is_ours(field.name)
    });
    any.extend(texts.map(|field| format!("{} {condition}", field.name)));
    any.join(" or ")
}

/// Addresses that `host` asks for.
fn is_of_ends(name: &str) -> bool {
    matches!(name, "host" | "orig_ip" | "resp_ip")
}

/// Text that no traffic brings.
fn is_ours(name: &str) -> bool {
    matches!(name, "session_id" | "tag" | "app_by" | "tunnel" | "name")
}

fn is_station(term: &str) -> bool {
    let parts: Vec<&str> = term.split(':').collect();
    let is_byte = |part: &&str| {
        (1..=2).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    parts.len() == 6 && parts.iter().all(is_byte)
}

#[cfg(test)]
mod tests {
    use units::Timestamp;

    use super::*;
    use crate::Query;

    #[test]
    fn every_term_is_a_query_of_many_fields() {
        for term in ["10.0.0.1", "2001:db8::1", "00:1b:21:aa:bb:cc", "Jones", "b. \"jones\" *", "-"]
        {
            let text = subject(term);
            let query = Query::parse(&text, Timestamp(0));
            assert!(query.is_ok(), "{text}: {query:?}");
            assert_eq!(Query::parse(&query.unwrap().to_string(), Timestamp(0)).map(drop), Ok(()));
            let names = ["sni", "http_user_agent", "dns_answers"];
            assert!(names.iter().all(|name| text.contains(&format!(" or {name} "))), "{text}");
        }
        assert!(subject("10.0.0.1").contains(r#"dns_answers mentions "10.0.0.1""#));
        assert!(subject("2001:DB8:0::1").contains(r#"sni mentions "2001:db8::1""#));
        assert!(subject("10.0.0.1").starts_with("host 10.0.0.1 or "));
        assert!(subject("0:1:2:3:4:5").starts_with("ether host 0:1:2:3:4:5 or "));
        assert!(!subject("0:1:2:3:4").contains("ether"));
        assert!(subject("a*b").contains(r#"sni = "*a\*b*""#), "{}", subject("a*b"));
    }
}
