//! What an endpoint is: its path, who may ask it, its parameters, what it answers with.

use crate::scope::Scope;

/// JSON.
pub const JSON: &str = "application/json";
/// A line of JSON each.
pub const NDJSON: &str = "application/x-ndjson";
/// What is registered with IANA for streams of Arrow's IPC format.
pub const ARROW: &str = "application/vnd.apache.arrow.stream";
/// `draft-ietf-opsawg-pcapng`, and what Wireshark's people registered with IANA for pcap.
pub const PCAPNG: &str = "application/x-pcapng";
/// Text for a person.
pub const PLAIN: &str = "text/plain";
/// Server-sent events, as the HTML standard has them.
pub const EVENTS: &str = "text/event-stream";

/// Who may ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Anybody.
    Nothing,
    /// A secret that the request brings: a token, a password, a link.
    Secret,
    /// Any credential.
    Credential,
    /// One with this scope.
    Scope(Scope),
    /// One with one of these scopes.
    OneOf(&'static [Scope]),
}

/// What is done with what stands at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// It is read.
    Get,
    /// It is made or changed.
    Post,
    /// It is taken away.
    Delete,
}

impl Method {
    /// As HTTP has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// What stands at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matter {
    /// Whether the service is well.
    Health,
    /// The document of all this.
    OpenApi,
    /// What one can log in with.
    LoginWays,
    /// The session of a browser begins.
    Login,
    /// The first administrator is made.
    First,
    /// A login at the identity provider begins.
    BeginAtProvider,
    /// The browser is back from it.
    FinishAtProvider,
    /// The session of a browser ends.
    Logout,
    /// Who asks.
    Caller,
    /// The own password is set.
    ChangePassword,
    /// A second factor is offered.
    BeginSecondFactor,
    /// It is set up.
    ConfirmSecondFactor,
    /// It is taken away.
    EndSecondFactor,
    /// A key is asked to sign.
    BeginKey,
    /// It is registered.
    ConfirmKey,
    /// It is taken away.
    EndKey,
    /// Who may log in.
    People,
    /// A person is added.
    AddPerson,
    /// An account is taken out.
    RemovePerson,
    /// A person gets another role.
    PersonRole,
    /// A person gets a new password.
    PersonPassword,
    /// A person is kept out.
    DisablePerson,
    /// A person may log in again.
    EnablePerson,
    /// A person's second factor is taken away.
    ResetSecondFactor,
    /// Tokens and lines of certificates.
    Tokens,
    /// A token is made.
    CreateToken,
    /// A token is revoked.
    RevokeToken,
    /// Lines of the audit.
    Audit,
    /// Whether its chain is whole.
    AuditCheck,
    /// What the service was started with.
    Settings,
    /// How volumes and recorders stand.
    Volumes,
    /// What a volume holds.
    Inspection,
    /// What lies where on its members.
    Ring,
    /// Its recordings.
    Recordings,
    /// Where packets are missing.
    Gaps,
    /// What its disks were measured for.
    Qualification,
    /// What is wrong with its recorder.
    Findings,
    /// Fields of queries.
    Fields,
    /// Sessions.
    Sessions,
    /// What sessions sum up to.
    Summary,
    /// Packets, decoded.
    Packets,
    /// Packets, as another program decodes them.
    Decode,
    /// Packets, as a file.
    Extract,
    /// Rows of SQL.
    Sql,
    /// Extracts that were asked for.
    Requests,
    /// An extract is asked for.
    AskExtract,
    /// One that was asked for.
    Request,
    /// Somebody else approves it.
    Approve,
    /// It is withdrawn or refused.
    EndRequest,
    /// Packets that were asked for and approved, as a file.
    ApprovedExtract,
    /// Packets that are put aside.
    Holds,
    /// Packets are put aside.
    Hold,
    /// A hold is removed.
    Release,
    /// Tags of sessions.
    Tags,
    /// Sessions are tagged.
    AddTags,
    /// A tag is removed.
    RemoveTag,
    /// Long jobs.
    Jobs,
    /// A job is started.
    StartJob,
    /// How a job stands.
    Job,
    /// How a job goes on.
    JobEvents,
    /// A job is ended early.
    CancelJob,
    /// What is missing from an answer.
    Answer,
    /// The manifest of an extract.
    Manifest,
    /// Metrics for Prometheus.
    Metrics,
}

impl Matter {
    /// It is put down before it is done.
    pub fn changes(self) -> bool {
        matches!(
            self,
            Self::Hold
                | Self::AskExtract
                | Self::Approve
                | Self::EndRequest
                | Self::Release
                | Self::AddTags
                | Self::RemoveTag
                | Self::StartJob
                | Self::CancelJob
                | Self::ChangePassword
                | Self::ConfirmSecondFactor
                | Self::EndSecondFactor
                | Self::ConfirmKey
                | Self::EndKey
                | Self::AddPerson
                | Self::RemovePerson
                | Self::PersonRole
                | Self::PersonPassword
                | Self::DisablePerson
                | Self::EnablePerson
                | Self::ResetSecondFactor
                | Self::CreateToken
                | Self::RevokeToken
        )
    }

    /// It is about the account of who asks, and a token has none.
    pub fn is_of_an_account(self) -> bool {
        matches!(
            self,
            Self::ChangePassword
                | Self::BeginSecondFactor
                | Self::ConfirmSecondFactor
                | Self::EndSecondFactor
                | Self::BeginKey
                | Self::ConfirmKey
                | Self::EndKey
        )
    }

    /// It is about volumes and the service, not about people, tokens and the audit.
    pub fn is_of_volumes(self) -> bool {
        let is_of_access = matches!(
            self,
            Self::LoginWays
                | Self::Login
                | Self::First
                | Self::BeginAtProvider
                | Self::FinishAtProvider
                | Self::Logout
                | Self::Caller
                | Self::People
                | Self::AddPerson
                | Self::RemovePerson
                | Self::PersonRole
                | Self::PersonPassword
                | Self::DisablePerson
                | Self::EnablePerson
                | Self::ResetSecondFactor
                | Self::Tokens
                | Self::CreateToken
                | Self::RevokeToken
                | Self::Audit
                | Self::AuditCheck
        );
        !is_of_access && !self.is_of_an_account()
    }

    /// A worker asks a volume for it, and the answer has an id.
    pub fn asks_volume(self) -> bool {
        matches!(
            self,
            Self::Sessions
                | Self::Summary
                | Self::Packets
                | Self::Decode
                | Self::Extract
                | Self::ApprovedExtract
                | Self::Sql
                | Self::Hold
        )
    }

    /// It is about an extract that one asks for and another one approves.
    pub fn is_of_requests(self) -> bool {
        matches!(
            self,
            Self::Requests
                | Self::AskExtract
                | Self::Request
                | Self::Approve
                | Self::EndRequest
                | Self::ApprovedExtract
        )
    }

    /// A worker looks at a volume for it, and gives what it sees.
    pub fn is_looked_at(self) -> bool {
        matches!(
            self,
            Self::Inspection
                | Self::Ring
                | Self::Recordings
                | Self::Gaps
                | Self::Qualification
                | Self::Findings
        )
    }

    /// It is permitted to who has to change the password first.
    pub fn is_before_change(self) -> bool {
        matches!(self, Self::Caller | Self::Logout | Self::ChangePassword)
    }
}

/// A parameter of a query string, or a member of a body.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// `string`, `integer`, `boolean` or `object`.
    pub kind: &'static str,
    /// What it means, for the document.
    pub meaning: &'static str,
    /// The words that it may be; any text where there are none.
    pub words: &'static [&'static str],
    /// The expression that its text fits.
    pub pattern: Option<&'static str>,
}

impl Parameter {
    const fn new(name: &'static str, kind: &'static str, meaning: &'static str) -> Self {
        Self { name, kind, meaning, words: &[], pattern: None }
    }

    pub(crate) const fn text(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, "string", meaning)
    }

    pub(crate) const fn number(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, "integer", meaning)
    }

    pub(crate) const fn object(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, "object", meaning)
    }

    pub(crate) const fn flag(name: &'static str, meaning: &'static str) -> Self {
        Self::new(name, "boolean", meaning)
    }

    pub(crate) const fn one_of(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    pub(crate) const fn like(self, pattern: &'static str) -> Self {
        Self { pattern: Some(pattern), ..self }
    }
}

/// An endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `{id}` stands for one part.
    pub path: &'static str,
    /// What stands there.
    pub what: Matter,
    /// What is done with it.
    pub method: Method,
    /// Who may ask.
    pub needs: Needs,
    /// In a line, for the document.
    pub summary: &'static str,
    /// What may stand behind its path.
    pub parameters: &'static [Parameter],
    /// Members of the JSON that the request has as its body: what is secret.
    pub body: &'static [Parameter],
    /// What it answers with.
    pub media_types: &'static [&'static str],
}

impl Endpoint {
    /// Whether a path is this one's; the part in the place of `{id}`.
    pub fn fits<'p>(&self, path: &'p str) -> Option<&'p str> {
        let Some((before, behind)) = self.path.split_once("{id}") else {
            return (self.path == path).then_some("");
        };
        let id = path.strip_prefix(before)?.strip_suffix(behind)?;
        (!id.is_empty() && !id.contains('/')).then_some(id)
    }
}
