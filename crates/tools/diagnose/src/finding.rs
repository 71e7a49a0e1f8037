//! What a diagnosis says.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It costs nothing now; it explains something, or may cost later.
    Note,
    /// It costs some of what was possible.
    Warning,
    /// It is why something is slow, or fails.
    Problem,
}

impl Severity {
    /// The severity in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// Something that can be done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Remedy {
    /// The remedy in words.
    pub what: String,
    /// Commands that do it until the next start of the machine.
    pub now: Vec<String>,
    /// Commands that do it for good.
    pub for_good: Vec<String>,
}

impl Remedy {
    /// One that no command of ours can do.
    pub fn by_hand(what: impl Into<String>) -> Self {
        Self { what: what.into(), now: Vec::new(), for_good: Vec::new() }
    }

    /// A setting of the kernel.
    pub(crate) fn sysctl(what: impl Into<String>, name: &str, value: &str) -> Self {
        Self {
            what: what.into(),
            now: vec![format!("sysctl -w {name}={value}")],
            for_good: vec![format!("echo '{name} = {value}' > /etc/sysctl.d/90-{name}.conf")],
        }
    }
}

impl Remedy {
    /// The same for the settings of a namespace that is entered so; nothing keeps these for good.
    pub(crate) fn entered_by(mut self, enter: &str) -> Self {
        if !enter.is_empty() {
            self.now.iter_mut().for_each(|command| command.insert_str(0, enter));
            self.for_good.clear();
        }
        self
    }
}

/// One finding. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// What programs know it by, such as `tcp.syn_cookies`.
    pub kind: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// How much it touches: connections, or requests. Findings are ranked by it.
    pub reach: usize,
    /// What is so, in one sentence.
    pub what: String,
    /// Observations that show it.
    pub evidence: Vec<String>,
    /// Why it is so.
    pub cause: String,
    /// What helps, the best first.
    pub remedies: Vec<Remedy>,
}

/// Something that could not be seen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Unseen {
    /// What could not be seen.
    pub what: String,
    /// What it would take.
    pub needs: String,
}

/// Who has, or waits for, something that there is only so much of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Share {
    /// What it is about.
    pub of: &'static str,
    /// Who has it or waits for it, and how much.
    pub what: String,
    /// The kind of finding that has the detail, where one was found.
    pub finding: Option<&'static str>,
}

/// All that was found.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Diagnosis {
    /// What was looked at, in words.
    pub looked_at: Vec<String>,
    /// Who has the processors and disks, and who waits; of a machine with little to do nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    /// The worst first.
    pub findings: Vec<Finding>,
    /// What could not be seen.
    pub unseen: Vec<Unseen>,
}

impl Diagnosis {
    /// With its findings in their order.
    pub(crate) fn ranked(mut self) -> Self {
        crate::order::sort(&mut self.findings);
        for share in &mut self.shares {
            share.finding = crate::order::detail(&self.findings, share.of);
        }
        self
    }

    /// The place of the finding that explains the one at a place.
    pub fn explanation(&self, of: usize) -> Option<usize> {
        crate::order::explanation(&self.findings, self.findings.get(of)?)
    }

    /// Joins several diagnoses into one.
    pub fn joined(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.looked_at.extend(part.looked_at);
            all.shares.extend(part.shares);
            all.findings.extend(part.findings);
            all.unseen.extend(part.unseen);
        }
        all.ranked()
    }

    /// Whether something is found that should not be so.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }
}
