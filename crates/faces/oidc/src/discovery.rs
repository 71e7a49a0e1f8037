//! What a provider says of itself (`OpenID` Connect Discovery 1.0).

use serde::Deserialize;

use crate::url::Url;

/// Behind the issuer's address (section 4).
pub(crate) const PATH: &str = "/.well-known/openid-configuration";

/// What a provider says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Discovery {
    /// As ID tokens name it.
    pub(crate) issuer: String,
    pub(crate) authorization: Url,
    pub(crate) token: Url,
    pub(crate) keys: Url,
    pub(crate) userinfo: Option<Url>,
    /// The client's secret goes into the heading, not into the form.
    pub(crate) takes_basic: bool,
    /// The page comes back with the issuer's name (RFC 9207).
    pub(crate) says_issuer: bool,
}

#[derive(Deserialize)]
struct Said {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Discovery {
    /// Where it is asked for.
    pub(crate) fn place(issuer: &Url) -> Result<Url, String> {
        let text = format!("{}{PATH}", issuer.as_str().trim_end_matches('/'));
        Url::parse(&text).map_err(str::to_owned)
    }

    /// Reads it. Another issuer's is refused (section 4.3): it could have us believe its tokens.
    pub(crate) fn parse(bytes: &[u8], issuer: &Url) -> Result<Self, String> {
        let said: Said = serde_json::from_slice(bytes)
            .map_err(|error| format!("what it says of itself is wrong: {error}"))?;
        if said.issuer.trim_end_matches('/') != issuer.as_str().trim_end_matches('/') {
            return Err("it says that it is another issuer".to_owned());
        }
        let url = |name: &str, text: &str| {
            Url::parse(text).map_err(|why| format!("its {name} is wrong: {why}"))
        };
        let methods = said.token_endpoint_auth_methods_supported;
        let has = |method: &str| methods.iter().any(|it| it == method);
        Ok(Self {
            authorization: url("authorization_endpoint", &said.authorization_endpoint)?,
            token: url("token_endpoint", &said.token_endpoint)?,
            keys: url("jwks_uri", &said.jwks_uri)?,
            userinfo: said
                .userinfo_endpoint
                .as_deref()
                .map(|it| url("userinfo", it))
                .transpose()?,
            // Where it says nothing it takes that (section 3).
            takes_basic: methods.is_empty() || has("client_secret_basic"),
            says_issuer: said.authorization_response_iss_parameter_supported,
            issuer: said.issuer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn another_issuer_and_plain_addresses_are_refused() {
        let issuer = Url::parse("https://id.example.com/a").unwrap();
        let place = Discovery::place(&issuer).unwrap();
        assert_eq!(place.path, "/a/.well-known/openid-configuration");
        let said = json!({"issuer": "https://id.example.com/a", "jwks_uri": "https://k.example/",
            "authorization_endpoint": "https://id.example.com/auth",
            "token_endpoint": "https://id.example.com/token"});
        let parse =
            |said: &serde_json::Value| Discovery::parse(said.to_string().as_bytes(), &issuer);
        let discovery = parse(&said).unwrap();
        assert!(discovery.takes_basic && !discovery.says_issuer);
        for (name, value) in [
            ("issuer", "https://id.example.com/b"),
            ("issuer", "https://id.example.com"),
            ("jwks_uri", "http://k.example/"),
            ("token_endpoint", "file:///etc/passwd"),
            ("authorization_endpoint", "javascript:alert(1)"),
            ("userinfo_endpoint", "http://169.254.169.254/"),
        ] {
            let mut wrong = said.clone();
            wrong[name] = json!(value);
            assert!(parse(&wrong).is_err(), "{name} {value}");
        }
    }
}
