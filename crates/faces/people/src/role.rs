//! Roles: names for scopes, with a query that is asked besides whatever is asked.

use core::str::FromStr;

use interface::Scope;
use query::Query;
use units::Timestamp;

use crate::name::is_name;

/// The role that permits everything.
pub const ADMINISTRATOR: &str = "administrator";
const ANALYST: &str = "analyst";
const VIEWER: &str = "viewer";

/// A role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Role {
    /// As accounts name it.
    pub name: String,
    /// What it permits.
    pub scopes: Vec<Scope>,
    /// Who has it sees only sessions that match, and of packets those in its times.
    pub filter: Option<String>,
}

impl FromStr for Role {
    type Err = &'static str;

    /// Reads `NAME=SCOPE,...[ FILTER]`.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (name, rest) = text.split_once('=').ok_or("write NAME=SCOPE,...[ FILTER]")?;
        // Behind a blank there is a filter: one that is empty was to be something, and sees all.
        let (scopes, filter) = match rest.split_once(' ') {
            Some((scopes, filter)) => (scopes, Some(filter)),
            None => (rest, None),
        };
        if !is_name(name) {
            return Err(crate::NAME_RULE);
        }
        if [ADMINISTRATOR, ANALYST, VIEWER].contains(&name) {
            return Err("administrator, analyst and viewer are always there as they are");
        }
        Ok(Self {
            name: name.to_owned(),
            scopes: Scope::list(scopes)?,
            filter: filter.map(checked_filter).transpose()?,
        })
    }
}

/// The roles of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roles(Vec<Role>);

impl Roles {
    /// Those that are always there, and further ones. Of two of one name the last one counts.
    pub fn new(further: &[Role]) -> Self {
        let role = |name: &str, scopes: &[Scope]| Role {
            name: name.to_owned(),
            scopes: scopes.to_vec(),
            filter: None,
        };
        let analyst = [Scope::Sessions, Scope::Payload, Scope::Extract, Scope::Hold];
        let mut roles = vec![
            role(ADMINISTRATOR, &Scope::ALL),
            role(ANALYST, &analyst),
            role(VIEWER, &[Scope::Sessions]),
        ];
        roles.extend(further.iter().cloned());
        Self(roles)
    }

    /// The role of this name. A person whose role is not there any more may do nothing.
    pub fn find(&self, name: &str) -> Option<&Role> {
        self.0.iter().rev().find(|role| role.name == name)
    }

    /// All of them.
    pub fn all(&self) -> &[Role] {
        &self.0
    }
}

/// A query that can be asked of any volume, in one line.
pub fn checked_filter(text: &str) -> Result<String, &'static str> {
    let query = Query::parse(text, Timestamp(0)).map_err(|_| "the filter is no query")?;
    let is_line = !text.chars().any(char::is_control) && !text.trim().is_empty();
    let is_open = query.needs_atlas().is_none();
    match (is_line, is_open) {
        (true, true) => Ok(text.trim().to_owned()),
        (false, _) => Err("the filter is empty, or more than a line"),
        (_, false) => Err("the filter needs a database of addresses, or tags: there is none here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_scopes_and_a_filter_that_is_a_query() {
        let role: Role = "desk=sessions,payload net 10.0.0.0/8 and since 7d ago".parse().unwrap();
        assert_eq!(role.scopes, [Scope::Sessions, Scope::Payload]);
        assert_eq!(role.filter.as_deref(), Some("net 10.0.0.0/8 and since 7d ago"));
        let nothing: Role = "guest=".parse().unwrap();
        assert_eq!((nothing.scopes, nothing.filter), (vec![], None));
        for wrong in [
            "desk",
            "=sessions",
            "a b=sessions",
            "desk=session",
            "desk=sessions hsot 1.2.3.4",
            "desk=sessions ",
            "desk=sessions   ",
            "desk=sessions country = NL",
            "desk=sessions port 53) or (port 54",
            "administrator=sessions",
            "viewer=sessions,extract",
        ] {
            assert!(wrong.parse::<Role>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_usual_roles_are_always_there() {
        let roles = Roles::new(&["desk=sessions".parse().unwrap()]);
        assert_eq!(roles.find(ADMINISTRATOR).unwrap().scopes, Scope::ALL);
        assert!(!roles.find("analyst").unwrap().scopes.contains(&Scope::Admin));
        assert_eq!(roles.find("viewer").unwrap().scopes, [Scope::Sessions]);
        assert!(roles.find("desk").is_some() && roles.find("Viewer").is_none());
    }
}
