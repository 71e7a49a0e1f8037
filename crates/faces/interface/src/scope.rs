//! What a credential or a role permits.

/// What a credential permits. None of them contains another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// To read sessions.
    Sessions,
    /// To see payload.
    Payload,
    /// To take packets.
    Extract,
    /// To take packets that somebody else has approved.
    Request,
    /// To approve what somebody else has requested.
    Approve,
    /// To hold packets beyond the ring.
    Hold,
    /// To manage people and tokens, and to read the audit.
    Admin,
}

impl Scope {
    /// All that there are.
    pub const ALL: [Self; 7] = [
        Self::Sessions,
        Self::Payload,
        Self::Extract,
        Self::Request,
        Self::Approve,
        Self::Hold,
        Self::Admin,
    ];

    /// As files and flags have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Payload => "payload",
            Self::Extract => "extract",
            Self::Request => "request",
            Self::Approve => "approve",
            Self::Hold => "hold",
            Self::Admin => "admin",
        }
    }

    /// The scope of this word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.word() == word)
    }

    /// The scopes of a list with commas.
    ///
    /// # Errors
    /// When a word of it is none.
    pub fn list(text: &str) -> Result<Vec<Self>, &'static str> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let scopes = words.map(Self::of_word).collect::<Option<_>>();
        scopes.ok_or("scopes are sessions, payload, extract, request, approve, hold, admin")
    }
}
