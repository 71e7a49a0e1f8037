//! The endpoints: one table, by which requests are routed and checked, and of which the `OpenAPI`
//! document is made.

use crate::endpoint::{
    ARROW, EVENTS, Endpoint, JSON, Matter, Method, NDJSON, Needs, PCAPNG, PLAIN, Parameter,
};
use crate::scope::Scope;

/// What a cursor looks like, as a regular expression.
const CURSOR_PATTERN: &str = "^[12]_-?[0-9]+_[0-9]+[.][0-9]+-[0-9]+_[0-9]+_-?[0-9]+_[0-9a-f]{8}$";

const QUERY: Parameter = Parameter::text(
    "query",
    "Which sessions, in the query language (docs/query.md); all without it",
);
const VOLUME: Parameter =
    Parameter::text("volume", "Name or id of the volume; needed where several are served");

const ONLY_RANGE: Parameter = Parameter::flag(
    "only_range",
    "Of the sessions' packets only those between the query's before and after",
);

/// What an extract is asked for, and where it goes on.
static EXTRACT: [Parameter; 14] = [
    QUERY,
    VOLUME,
    ONLY_RANGE,
    Parameter::flag("whole_sessions", "With payload: all packets of sessions that have such a one"),
    Parameter::number("limit", "At most so many sessions"),
    Parameter::number("limit_packets", "At most so many packets"),
    Parameter::number("limit_bytes", "At most so many bytes of packets"),
    Parameter::number("around_ms", "All packets from so long before each session to so long after"),
    Parameter::text("packet_filter", "Those that pass this filter, in the words of pcap-filter"),
    Parameter::text("payload", "Those with this in them: a text, hex:DIGITS or re:EXPRESSION"),
    Parameter::flag("comments", "Each packet has the id of its session as a comment, and its side"),
    Parameter::number("offset", "Go on behind so many bytes of an extract: 409 if that cannot be"),
    Parameter::text("sha256", "With offset: SHA-256 of these bytes, in hex digits")
        .like("^[0-9a-f]{64}$"),
    Parameter::number("now_ns", "What relative times count from: as Wirespool-Now has said it"),
];

const NAME: Parameter = Parameter::text("name", "Name of the person");
const PASSWORD: Parameter = Parameter::text("password", "Password of the person");
const NEW_PASSWORD: Parameter = Parameter::text("new_password", "12 characters or more");
const CODE: Parameter = Parameter::text(
    "code",
    "Six digits of the authenticator, or one of the ten codes; where there is one",
);
const KEY: Parameter = Parameter::object(
    "key",
    "In the place of a code: what a key has signed, id, client_data, authenticator_data and \
     signature in base 64 for URLs",
);
const KEY_NAME: Parameter = Parameter::text("name", "How the person calls the key");
const NEW_KEY: Parameter = Parameter::object(
    "key",
    "What the browser says of it: client_data and attestation in base 64 for URLs",
);
const LINK: Parameter = Parameter::text("link", "What stands behind link= in the link");
const PROVIDER_CODE: Parameter = Parameter::text("code", "What the provider has sent as code");
const STATE: Parameter = Parameter::text("state", "What it has sent as state");
const ISSUER: Parameter = Parameter::text("iss", "What it has sent as iss, where it does");
const ROLE: Parameter = Parameter::text("role", "Name of a role");
const PERSON_NAME: Parameter = Parameter::text("name", "Name by which the person logs in");
const TOKEN_NAME: Parameter = Parameter::text("name", "Name of the credential, for the log");

/// All that there are.
pub static ENDPOINTS: [Endpoint; 57] = [
    Endpoint {
        path: "/api/v1/health",
        what: Matter::Health,
        method: Method::Get,
        needs: Needs::Nothing,
        summary: "Whether the service is well",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/openapi.json",
        what: Matter::OpenApi,
        method: Method::Get,
        needs: Needs::Credential,
        summary: "This document",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/login",
        what: Matter::Login,
        method: Method::Post,
        needs: Needs::Secret,
        summary: "Begin a session of a browser: of the token that is sent, or of a person",
        parameters: &[],
        body: &[NAME, PASSWORD, CODE, KEY],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/logout",
        what: Matter::Logout,
        method: Method::Post,
        needs: Needs::Credential,
        summary: "End the session of a browser",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/whoami",
        what: Matter::Caller,
        method: Method::Get,
        needs: Needs::Credential,
        summary: "Name and scopes of the credential, and the volumes that are served",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/login",
        what: Matter::LoginWays,
        method: Method::Get,
        needs: Needs::Nothing,
        summary: "What one can log in with",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/first",
        what: Matter::First,
        method: Method::Post,
        needs: Needs::Secret,
        summary: "Make the first administrator, by the link that the service has shown",
        parameters: &[],
        body: &[LINK, NAME, PASSWORD],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/login/provider",
        what: Matter::BeginAtProvider,
        method: Method::Post,
        needs: Needs::Secret,
        summary: "Begin a login at the identity provider: where the browser goes",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/login/provider/finish",
        what: Matter::FinishAtProvider,
        method: Method::Post,
        needs: Needs::Secret,
        summary: "Begin a session of a browser that comes back from the identity provider",
        parameters: &[],
        body: &[PROVIDER_CODE, STATE, ISSUER],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/account/password",
        what: Matter::ChangePassword,
        method: Method::Post,
        needs: Needs::Credential,
        summary: "Set the own password, which ends all other sessions of the person",
        parameters: &[],
        body: &[PASSWORD, CODE, KEY, NEW_PASSWORD],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/account/second-factor",
        what: Matter::BeginSecondFactor,
        method: Method::Post,
        needs: Needs::Credential,
        summary: "Begin to set up a second factor: a secret for an authenticator",
        parameters: &[],
        body: &[PASSWORD, CODE, KEY],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/account/second-factor/confirm",
        what: Matter::ConfirmSecondFactor,
        method: Method::Post,
        needs: Needs::Credential,
        summary: "Set it up, by a code of it; ten codes for who loses the authenticator",
        parameters: &[],
        body: &[CODE],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/account/second-factor",
        what: Matter::EndSecondFactor,
        method: Method::Delete,
        needs: Needs::Credential,
        summary: "Take the own authenticator away; keys stay",
        parameters: &[],
        body: &[PASSWORD, CODE, KEY],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/account/keys",
        what: Matter::BeginKey,
        method: Method::Post,
        needs: Needs::Credential,
        summary: "Begin to register a key: what the browser has it sign (Web Authentication)",
        parameters: &[],
        body: &[PASSWORD, CODE, KEY],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/account/keys/confirm",
        what: Matter::ConfirmKey,
        method: Method::Post,
        needs: Needs::Credential,
        summary: "Register it; of the first second factor ten codes for who loses the key",
        parameters: &[],
        body: &[KEY_NAME, NEW_KEY],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/account/keys/{id}",
        what: Matter::EndKey,
        method: Method::Delete,
        needs: Needs::Credential,
        summary: "Take a key of one's own away",
        parameters: &[],
        body: &[PASSWORD, CODE, KEY],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/people",
        what: Matter::People,
        method: Method::Get,
        needs: Needs::Scope(Scope::Admin),
        summary: "Who may log in, and the roles",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/people",
        what: Matter::AddPerson,
        method: Method::Post,
        needs: Needs::Scope(Scope::Admin),
        summary: "Add a person; the password is shown once, and changed at the first login",
        parameters: &[PERSON_NAME, ROLE],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/people/{id}",
        what: Matter::RemovePerson,
        method: Method::Delete,
        needs: Needs::Scope(Scope::Admin),
        summary: "Take an account out",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/people/{id}/role",
        what: Matter::PersonRole,
        method: Method::Post,
        needs: Needs::Scope(Scope::Admin),
        summary: "Give a person another role",
        parameters: &[ROLE],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/people/{id}/password",
        what: Matter::PersonPassword,
        method: Method::Post,
        needs: Needs::Scope(Scope::Admin),
        summary: "Give a person a new password, which is shown once",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/people/{id}/disable",
        what: Matter::DisablePerson,
        method: Method::Post,
        needs: Needs::Scope(Scope::Admin),
        summary: "Keep a person from logging in, and end their sessions",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/people/{id}/enable",
        what: Matter::EnablePerson,
        method: Method::Post,
        needs: Needs::Scope(Scope::Admin),
        summary: "Let a person log in again",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/people/{id}/second-factor",
        what: Matter::ResetSecondFactor,
        method: Method::Delete,
        needs: Needs::Scope(Scope::Admin),
        summary: "Take the second factor of a person away",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/tokens",
        what: Matter::Tokens,
        method: Method::Get,
        needs: Needs::Scope(Scope::Admin),
        summary: "Tokens and lines of certificates, without their hashes",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/tokens",
        what: Matter::CreateToken,
        method: Method::Post,
        needs: Needs::Scope(Scope::Admin),
        summary: "Make a token, which is shown once",
        parameters: &[
            TOKEN_NAME,
            Parameter::text(
                "scopes",
                "What it permits: sessions, payload, extract, hold, admin, with commas",
            ),
            Parameter::text("expires", "Until when it counts, in RFC 3339; for ever without it"),
            Parameter::text("filter", "A query that is asked besides whatever its owner asks"),
        ],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/tokens/{id}",
        what: Matter::RevokeToken,
        method: Method::Delete,
        needs: Needs::Scope(Scope::Admin),
        summary: "Revoke a token",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/audit",
        what: Matter::Audit,
        method: Method::Get,
        needs: Needs::Scope(Scope::Admin),
        summary: "Who asked what, when, and what came out: the newest lines first",
        parameters: &[
            Parameter::number("limit", "At most so many lines, 100 without it, 1000 at most"),
            Parameter::number("before", "Go on before the line that a page gave as its next"),
            Parameter::text("credential", "Requests of who has this name"),
            Parameter::text("path", "Requests whose path begins so"),
        ],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/audit/check",
        what: Matter::AuditCheck,
        method: Method::Get,
        needs: Needs::Scope(Scope::Admin),
        summary: "Whether the chain of the whole audit is as it was written",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/settings",
        what: Matter::Settings,
        method: Method::Get,
        needs: Needs::Scope(Scope::Admin),
        summary: "What the service was started with: keys of its configuration, and their values",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/volumes",
        what: Matter::Volumes,
        method: Method::Get,
        needs: Needs::Credential,
        summary: "The volumes and their recorders, as `wirespool status --json` tells of them",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/inspection",
        what: Matter::Inspection,
        method: Method::Get,
        needs: Needs::Scope(Scope::Sessions),
        summary: "What a volume holds, as `wirespool inspect --json` tells of it",
        parameters: &[
            VOLUME,
            Parameter::flag("map", "With the ring over the surface, as --map draws it"),
            Parameter::number("width", "Of text: columns of the terminal"),
        ],
        body: &[],
        media_types: &[JSON, PLAIN],
    },
    Endpoint {
        path: "/api/v1/ring",
        what: Matter::Ring,
        method: Method::Get,
        needs: Needs::Credential,
        summary: "The ring over the surface of its members, in cells: age, content, damage, holds",
        parameters: &[
            VOLUME,
            Parameter::number("columns", "Cells in a row, 64 without it, 512 at most"),
            Parameter::number(
                "rows",
                "Rows, about: 32 without it, 512 at most; 16384 cells in all",
            ),
        ],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/recordings",
        what: Matter::Recordings,
        method: Method::Get,
        needs: Needs::Scope(Scope::Sessions),
        summary: "Recordings that the ring holds something of, oldest first",
        parameters: &[VOLUME],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/gaps",
        what: Matter::Gaps,
        method: Method::Get,
        needs: Needs::Scope(Scope::Sessions),
        summary: "Stretches in which packets are missing, and what is recorded besides",
        parameters: &[
            Parameter::text(
                "query",
                "A query of whose bounds in time these are; always without it",
            ),
            VOLUME,
            Parameter::number("limit", "At most so many gaps, 1000 without it, 10000 at most"),
        ],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/qualification",
        what: Matter::Qualification,
        method: Method::Get,
        needs: Needs::Credential,
        summary: "What the disks of a volume were measured for, and what is asked of them now",
        parameters: &[VOLUME],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/findings",
        what: Matter::Findings,
        method: Method::Get,
        needs: Needs::Credential,
        summary: "What is wrong with the recorder of a volume, as `diagnose recorder` finds it",
        parameters: &[
            VOLUME,
            Parameter::number(
                "for_ms",
                "So long its threads are looked at, 1000 without it, 10000 at most",
            ),
        ],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/fields",
        what: Matter::Fields,
        method: Method::Get,
        needs: Needs::Credential,
        summary: "The fields of the query language, as `wirespool fields --json` lists them",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/sessions",
        what: Matter::Sessions,
        method: Method::Get,
        needs: Needs::Scope(Scope::Sessions),
        summary: "Sessions that match a query, by their start: a page, or all as lines",
        parameters: &[
            QUERY,
            VOLUME,
            Parameter::number(
                "limit",
                "At most so many sessions; of a page 100 without it, 10000 at most",
            ),
            Parameter::text("cursor", "Go on behind the page that gave this as its next_cursor")
                .like(CURSOR_PATTERN),
            Parameter::text("order", "oldest (as without it) or newest: which start comes first")
                .one_of(&["oldest", "newest"]),
            Parameter::text(
                "sort",
                "FIELD or FIELD:desc, of lines: the smallest or the largest first; those \
                          without a value come last",
            ),
        ],
        body: &[],
        media_types: &[JSON, NDJSON],
    },
    Endpoint {
        path: "/api/v1/summary",
        what: Matter::Summary,
        method: Method::Get,
        needs: Needs::Scope(Scope::Sessions),
        summary: "What the sessions that match sum up to: over time, and by values of fields",
        parameters: &[
            QUERY,
            VOLUME,
            Parameter::text("fields", "Names of fields with commas between them, 16 at most"),
            Parameter::number("limit", "Values of each field, 10 without it, 1000 at most"),
            Parameter::text(
                "by",
                "bytes (as without it), packets or sessions: of which those with the most",
            )
            .one_of(&["bytes", "packets", "sessions"]),
        ],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/packets",
        what: Matter::Packets,
        method: Method::Get,
        needs: Needs::Scope(Scope::Payload),
        summary: "Packets of the sessions that match, with what their headers say and their bytes",
        parameters: &[
            QUERY,
            VOLUME,
            Parameter::number(
                "limit",
                "At most so many packets, 1000 without it, 10000 and 32 MiB at most",
            ),
        ],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/sql",
        what: Matter::Sql,
        method: Method::Get,
        needs: Needs::Scope(Scope::Sessions),
        summary: "Rows of an SQL query over sessions, pieces and gaps",
        parameters: &[
            Parameter::text("query", "One SELECT, DESCRIBE or EXPLAIN (docs/sql.md)"),
            VOLUME,
            Parameter::number(
                "limit",
                "At most so many rows; of JSON 10000 at most, and without it",
            ),
        ],
        body: &[],
        media_types: &[JSON, NDJSON, ARROW],
    },
    Endpoint {
        path: "/api/v1/extract",
        what: Matter::Extract,
        method: Method::Get,
        needs: Needs::Scope(Scope::Extract),
        summary: "The packets of the sessions that match a query",
        parameters: &EXTRACT,
        body: &[],
        media_types: &[PCAPNG],
    },
    Endpoint {
        path: "/api/v1/holds",
        what: Matter::Holds,
        method: Method::Get,
        needs: Needs::Scope(Scope::Sessions),
        summary: "Packets put aside beyond the reach of the ring, as `hold --list` has them",
        parameters: &[VOLUME],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/holds",
        what: Matter::Hold,
        method: Method::Post,
        needs: Needs::Scope(Scope::Hold),
        summary: "Put the packets of the sessions that match aside; it answers when they are",
        parameters: &[QUERY, VOLUME, ONLY_RANGE],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/holds/{id}",
        what: Matter::Release,
        method: Method::Delete,
        needs: Needs::Scope(Scope::Hold),
        summary: "Remove packets that were put aside",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/tags",
        what: Matter::Tags,
        method: Method::Get,
        needs: Needs::Scope(Scope::Sessions),
        summary: "Tags of sessions, as `wirespool tag` prints them, the newest first",
        parameters: &[
            VOLUME,
            Parameter::text("session", "Those of the session with this id"),
            Parameter::text("tag", "Those that contain this text"),
            Parameter::number("limit", "At most so many, 1000 without it, 10000 at most"),
        ],
        body: &[],
        media_types: &[JSON, NDJSON],
    },
    Endpoint {
        path: "/api/v1/tags",
        what: Matter::AddTags,
        method: Method::Post,
        needs: Needs::Scope(Scope::Hold),
        summary: "Tag the sessions that an event of a log names, or those that match a query",
        parameters: &[
            Parameter::text("event", "A line of a log in JSON: an event of Suricata or Zeek"),
            Parameter::text("query", "Or which sessions, in the query language (docs/query.md)"),
            Parameter::text("tag", "With query: the tag, of 200 characters at most"),
            Parameter::number("severity", "With query: 1 is the highest, 255 the lowest"),
            VOLUME,
        ],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/tags/{id}",
        what: Matter::RemoveTag,
        method: Method::Delete,
        needs: Needs::Scope(Scope::Hold),
        summary: "Remove a tag",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/jobs",
        what: Matter::Jobs,
        method: Method::Get,
        needs: Needs::Scope(Scope::Admin),
        summary: "Jobs that run or wait, and the newest that have ended",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/jobs",
        what: Matter::StartJob,
        method: Method::Post,
        needs: Needs::Scope(Scope::Admin),
        summary: "Start a job, which goes on when its client leaves",
        parameters: &[
            Parameter::text("kind", "verify, scrub or hold: as the verbs of these names")
                .one_of(&["verify", "scrub", "hold"]),
            VOLUME,
            Parameter::flag("dry_run", "Of scrub: write nothing, which may run beside a recorder"),
            Parameter::text("query", "Of hold: which sessions"),
            ONLY_RANGE,
        ],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/jobs/{id}",
        what: Matter::Job,
        method: Method::Get,
        needs: Needs::Scope(Scope::Admin),
        summary: "How a job stands, and its result",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/jobs/{id}/events",
        what: Matter::JobEvents,
        method: Method::Get,
        needs: Needs::Scope(Scope::Admin),
        summary: "How a job goes on, as server-sent events, to its end",
        parameters: &[],
        body: &[],
        media_types: &[EVENTS],
    },
    Endpoint {
        path: "/api/v1/jobs/{id}",
        what: Matter::CancelJob,
        method: Method::Delete,
        needs: Needs::Scope(Scope::Admin),
        summary: "End a job early",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/answers/{id}",
        what: Matter::Answer,
        method: Method::Get,
        needs: Needs::Credential,
        summary: "What is missing from an answer that was sent, for who asked for it",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/api/v1/answers/{id}/manifest",
        what: Matter::Manifest,
        method: Method::Get,
        needs: Needs::Scope(Scope::Extract),
        summary: "The sealed manifest of an extract that was sent, for who asked for it",
        parameters: &[],
        body: &[],
        media_types: &[JSON],
    },
    Endpoint {
        path: "/metrics",
        what: Matter::Metrics,
        method: Method::Get,
        needs: Needs::Credential,
        summary: "Metrics of recorders, volumes and this service, for Prometheus",
        parameters: &[],
        body: &[],
        media_types: &["text/plain"],
    },
];

/// The endpoint of a path and a method, or else the first one of the path; the part in the place
/// of `{id}`.
pub fn find<'p>(path: &'p str, method: &str) -> Option<(&'static Endpoint, &'p str)> {
    let of_path = || ENDPOINTS.iter().filter_map(|it| Some((it, it.fits(path)?)));
    of_path().find(|(it, _)| it.method.word() == method).or_else(|| of_path().next())
}

/// The methods that are answered at an endpoint's path, with commas between them.
pub fn methods(endpoint: &Endpoint) -> String {
    let of_path = ENDPOINTS.iter().filter(|it| it.path == endpoint.path);
    of_path.map(|it| it.method.word()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_at_most_one_endpoint_and_an_id_is_one_part() {
        let of = |path| {
            let fitting = ENDPOINTS.iter().filter_map(|it| Some((it.what, it.fits(path)?)));
            fitting.collect::<Vec<_>>()
        };
        assert_eq!(of("/api/v1/sessions"), [(Matter::Sessions, "")]);
        assert_eq!(of("/api/v1/answers/a1"), [(Matter::Answer, "a1")]);
        assert_eq!(of("/api/v1/answers/a1/manifest"), [(Matter::Manifest, "a1")]);
        assert_eq!(of("/api/v1/jobs/a1/events"), [(Matter::JobEvents, "a1")]);
        for path in ["", "/", "/api/v1/answers/", "/api/v1/answers/a/b", "/api/v1/sessions/"] {
            assert!(of(path).is_empty(), "{path}");
        }
    }
}
