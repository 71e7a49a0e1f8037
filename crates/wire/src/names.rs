//! What application payload says of a session: the type that `app` fills, `format` puts into a row
//! and `index` stores. The names of its fields are those of the Parquet columns (docs/sessions.md).

/// Names found in the traffic. Lists hold distinct values in the order seen, bounded by `app`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// Application protocol by content: `tls`, `http`, `dns`.
    pub app: Option<&'static str>,
    /// TLS server name (RFC 6066).
    pub sni: Option<String>,
    /// TLS ALPN protocols offered by the client.
    pub alpn: Vec<String>,
    /// TLS version negotiated, or offered while no answer was seen: 0x0303 is 1.2.
    pub tls_version: Option<u16>,
    /// HTTP/1 Host.
    pub http_host: Vec<String>,
    /// HTTP/1 methods.
    pub http_method: Vec<String>,
    /// HTTP/1 request targets.
    pub http_path: Vec<String>,
    /// HTTP/1 status codes.
    pub http_status: Vec<u16>,
    /// HTTP/1 User-Agent.
    pub http_user_agent: Vec<String>,
    /// DNS names asked for.
    pub dns_names: Vec<String>,
    /// DNS types asked for.
    pub dns_types: Vec<u16>,
    /// DNS response codes.
    pub dns_rcodes: Vec<u16>,
    /// Addresses and names in DNS answers, as text.
    pub dns_answers: Vec<String>,
}

impl Names {
    /// Nothing found.
    pub const NONE: Self = Self {
        app: None,
        sni: None,
        alpn: Vec::new(),
        tls_version: None,
        http_host: Vec::new(),
        http_method: Vec::new(),
        http_path: Vec::new(),
        http_status: Vec::new(),
        http_user_agent: Vec::new(),
        dns_names: Vec::new(),
        dns_types: Vec::new(),
        dns_rcodes: Vec::new(),
        dns_answers: Vec::new(),
    };
}
