//! What the file of a provider says.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::claims::{Rule, Rules};
use crate::error::Error;
use crate::url::Url;

const RULES_MAX: usize = 100;
/// `openid` makes it a login; the others have providers say names.
const SCOPES: [&str; 3] = ["openid", "profile", "email"];
const NAME: &str = "preferred_username";
const LABEL: &str = "Log in at your provider";

/// A provider, and what its people may do here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    pub(crate) issuer: Url,
    pub(crate) client: Client,
    /// Certificates to believe, in PEM; those of the system without it.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) scopes: String,
    pub(crate) rules: Rules,
    label: String,
}

/// What the provider knows this service by.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) id: String,
    /// A public client has none: PKCE binds the code to who has begun.
    pub(crate) secret: Option<String>,
}

impl core::fmt::Debug for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Client {{ id: {:?} }}", self.id)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    issuer: String,
    client_id: String,
    client_secret: Option<String>,
    ca: Option<PathBuf>,
    scopes: Option<Vec<String>>,
    name: Option<String>,
    label: Option<String>,
    default_role: Option<String>,
    #[serde(default)]
    role: Vec<SaidRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidRule {
    claim: String,
    value: String,
    role: String,
}

impl Settings {
    /// Reads a file, which only its owner may read: it has a secret.
    ///
    /// # Errors
    /// When it cannot be read, or a key of it is wrong.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let wrong = |why: String| Error::Settings { path: path.to_path_buf(), why };
        Self::parse(&host::read_key(path)?).map_err(|why| wrong(page::safe::printable(&why)))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let said: Said = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let issuer = Url::parse(&said.issuer).map_err(|why| format!("issuer: {why}"))?;
        if said.client_id.is_empty() {
            return Err("client_id is empty".to_owned());
        }
        if said.role.len() > RULES_MAX || (said.role.is_empty() && said.default_role.is_none()) {
            return Err("write default_role, or 1 to 100 of [[role]]: else nobody has one".into());
        }
        let scopes = said.scopes.unwrap_or_else(|| SCOPES.map(str::to_owned).to_vec());
        if !scopes.iter().any(|scope| scope == "openid") {
            return Err("scopes: openid is missing".to_owned());
        }
        let rule = |it: SaidRule| Rule { claim: it.claim, value: it.value, role: it.role };
        let rules = Rules {
            name: said.name.unwrap_or_else(|| NAME.to_owned()),
            default_role: said.default_role,
            roles: said.role.into_iter().map(rule).collect(),
        };
        Ok(Self {
            issuer,
            client: Client { id: said.client_id, secret: said.client_secret },
            ca: said.ca,
            scopes: scopes.join(" "),
            rules,
            label: said.label.unwrap_or_else(|| LABEL.to_owned()),
        })
    }

    /// The address of the provider.
    pub fn issuer(&self) -> &str {
        self.issuer.as_str()
    }

    /// What the button of the page says.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Names of roles that it gives.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        let roles = self.rules.roles.iter().map(|rule| &*rule.role);
        roles.chain(self.rules.default_role.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "issuer = 'https://id.example.com/realms/a'\nclient_id = 'wirespool'\n\
                        [[role]]\nclaim = 'groups'\nvalue = 'netops'\nrole = 'analyst'\n";

    #[test]
    fn a_file_has_a_provider_a_client_and_roles() {
        let settings = Settings::parse(TEXT).unwrap();
        assert_eq!(settings.issuer(), "https://id.example.com/realms/a");
        assert_eq!(settings.scopes, "openid profile email");
        assert_eq!(settings.roles().collect::<Vec<_>>(), ["analyst"]);
        assert!(!format!("{settings:?}").contains("secret"));
        for (from, to) in [
            ("https", "http"),
            ("client_id = 'wirespool'", "client_id = ''"),
            ("client_id", "client_ident"),
            ("claim", "clam"),
            ("[[role]]\n", "[other]\n"),
            ("client_id", "scopes = ['profile']\nclient_id"),
        ] {
            assert!(Settings::parse(&TEXT.replacen(from, to, 1)).is_err(), "{to}");
        }
        let (without, _) = TEXT.split_once("[[role]]").unwrap();
        assert!(Settings::parse(without).unwrap_err().contains("default_role"));
        assert!(Settings::parse(&format!("{without}default_role = 'viewer'\n")).is_ok());
    }
}
