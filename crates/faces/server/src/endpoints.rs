//! The endpoints: one table, by which requests are routed and checked, and of which the `OpenAPI`
//! document is made.

use hyper::Method;

use crate::access::Scope;

pub(crate) const JSON: &str = "application/json";
pub(crate) const NDJSON: &str = "application/x-ndjson";
/// `draft-ietf-opsawg-pcapng`, and what Wireshark's people registered with IANA for pcap.
pub(crate) const PCAPNG: &str = "application/x-pcapng";

/// Who may ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Needs {
    /// Anybody.
    Nothing,
    /// Any credential.
    Credential,
    Scope(Scope),
}

/// What stands at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Matter {
    Health,
    OpenApi,
    Login,
    Logout,
    Caller,
    Volumes,
    Fields,
    Sessions,
    Summary,
    Packets,
    Extract,
    Holds,
    Hold,
    Release,
    Answer,
    Manifest,
    Metrics,
}

/// A parameter of a query string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// `string`, `integer` or `boolean`.
    pub(crate) kind: &'static str,
    pub(crate) meaning: &'static str,
}

/// An endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// `{id}` stands for one part.
    pub(crate) path: &'static str,
    pub(crate) what: Matter,
    pub(crate) method: Method,
    pub(crate) needs: Needs,
    pub(crate) summary: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// What it answers with.
    pub(crate) media_types: &'static [&'static str],
}

const QUERY: Parameter = Parameter {
    name: "query",
    kind: "string",
    meaning: "Which sessions, in the query language (docs/query.md); all without it",
};
const VOLUME: Parameter = Parameter {
    name: "volume",
    kind: "string",
    meaning: "Name or id of the volume; needed where several are served",
};

const ONLY_RANGE: Parameter = Parameter {
    name: "only_range",
    kind: "boolean",
    meaning: "Of the sessions' packets only those between the query's before and after",
};

pub(crate) static ENDPOINTS: [Endpoint; 17] = [
    Endpoint {
        path: "/api/v1/health",
        what: Matter::Health,
        method: Method::GET,
        needs: Needs::Nothing,
        summary: "Whether the service is well",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/openapi.json",
        what: Matter::OpenApi,
        method: Method::GET,
        needs: Needs::Credential,
        summary: "This document",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/login",
        what: Matter::Login,
        method: Method::POST,
        needs: Needs::Credential,
        summary: "Begin a session of a browser: a cookie in the place of the token",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/logout",
        what: Matter::Logout,
        method: Method::POST,
        needs: Needs::Credential,
        summary: "End the session of a browser",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/whoami",
        what: Matter::Caller,
        method: Method::GET,
        needs: Needs::Credential,
        summary: "Name and scopes of the credential, and the volumes that are served",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/volumes",
        what: Matter::Volumes,
        method: Method::GET,
        needs: Needs::Credential,
        summary: "The volumes and their recorders, as `wirespool status --json` tells of them",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/fields",
        what: Matter::Fields,
        method: Method::GET,
        needs: Needs::Credential,
        summary: "The fields of the query language, as `wirespool fields --json` lists them",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/sessions",
        what: Matter::Sessions,
        method: Method::GET,
        needs: Needs::Scope(Scope::Sessions),
        summary: "Sessions that match a query, by their start: a page, or all as lines",
        parameters: &[
            QUERY,
            VOLUME,
            Parameter {
                name: "limit",
                kind: "integer",
                meaning: "At most so many sessions; of a page 100 without it, 10000 at most",
            },
            Parameter {
                name: "cursor",
                kind: "string",
                meaning: "Go on behind the page that gave this as its next_cursor",
            },
            Parameter {
                name: "order",
                kind: "string",
                meaning: "oldest (as without it) or newest: which start comes first",
            },
        ],
        media_types: &[JSON, NDJSON],
    },
    Endpoint {
        path: "/api/v1/summary",
        what: Matter::Summary,
        method: Method::GET,
        needs: Needs::Scope(Scope::Sessions),
        summary: "What the sessions that match sum up to: over time, and by values of fields",
        parameters: &[
            QUERY,
            VOLUME,
            Parameter {
                name: "fields",
                kind: "string",
                meaning: "Names of fields with commas between them, 16 at most",
            },
            Parameter {
                name: "limit",
                kind: "integer",
                meaning: "Values of each field, 10 without it, 1000 at most",
            },
            Parameter {
                name: "by",
                kind: "string",
                meaning: "bytes (as without it), packets or sessions: of which those with the most",
            },
        ],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/packets",
        what: Matter::Packets,
        method: Method::GET,
        needs: Needs::Scope(Scope::Payload),
        summary: "Packets of the sessions that match, with what their headers say and their bytes",
        parameters: &[
            QUERY,
            VOLUME,
            Parameter {
                name: "limit",
                kind: "integer",
                meaning: "At most so many packets, 1000 without it, 10000 and 32 MiB at most",
            },
        ],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/extract",
        what: Matter::Extract,
        method: Method::GET,
        needs: Needs::Scope(Scope::Extract),
        summary: "The packets of the sessions that match a query",
        parameters: &[
            QUERY,
            VOLUME,
            ONLY_RANGE,
            Parameter {
                name: "limit_packets",
                kind: "integer",
                meaning: "At most so many packets",
            },
            Parameter {
                name: "limit_bytes",
                kind: "integer",
                meaning: "At most so many bytes of packets",
            },
        ],
        media_types: &[PCAPNG],
    },
    Endpoint {
        path: "/api/v1/holds",
        what: Matter::Holds,
        method: Method::GET,
        needs: Needs::Scope(Scope::Sessions),
        summary: "Packets put aside beyond the reach of the ring, as `hold --list` has them",
        parameters: &[VOLUME],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/holds",
        what: Matter::Hold,
        method: Method::POST,
        needs: Needs::Scope(Scope::Hold),
        summary: "Put the packets of the sessions that match aside; it answers when they are",
        parameters: &[QUERY, VOLUME, ONLY_RANGE],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/holds/{id}",
        what: Matter::Release,
        method: Method::DELETE,
        needs: Needs::Scope(Scope::Hold),
        summary: "Remove packets that were put aside",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/answers/{id}",
        what: Matter::Answer,
        method: Method::GET,
        needs: Needs::Credential,
        summary: "What is missing from an answer that was sent, for who asked for it",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/answers/{id}/manifest",
        what: Matter::Manifest,
        method: Method::GET,
        needs: Needs::Scope(Scope::Extract),
        summary: "The sealed manifest of an extract that was sent, for who asked for it",
        parameters: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/metrics",
        what: Matter::Metrics,
        method: Method::GET,
        needs: Needs::Credential,
        summary: "Metrics of recorders, volumes and this service, for Prometheus",
        parameters: &[],
        media_types: &["text/plain"],
    },
];

/// The endpoint of a path and a method, or else the first one of the path; the part in the place
/// of `{id}`.
pub(crate) fn find<'p>(path: &'p str, method: &Method) -> Option<(&'static Endpoint, &'p str)> {
    let of_path = || ENDPOINTS.iter().filter_map(|it| Some((it, it.fits(path)?)));
    of_path().find(|(it, _)| it.method == *method).or_else(|| of_path().next())
}

/// The methods that are answered at an endpoint's path, with commas between them.
pub(crate) fn methods(endpoint: &Endpoint) -> String {
    let of_path = ENDPOINTS.iter().filter(|it| it.path == endpoint.path);
    of_path.map(|it| it.method.as_str()).collect::<Vec<_>>().join(", ")
}

impl Endpoint {
    /// Whether a path is this one's; the part in the place of `{id}`.
    pub(crate) fn fits<'p>(&self, path: &'p str) -> Option<&'p str> {
        let Some((before, behind)) = self.path.split_once("{id}") else {
            return (self.path == path).then_some("");
        };
        let id = path.strip_prefix(before)?.strip_suffix(behind)?;
        (!id.is_empty() && !id.contains('/')).then_some(id)
    }
}
