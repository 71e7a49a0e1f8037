//! What a diagnosis says.

use schemars::JsonSchema;
use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
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

    /// A setting of the kernel. A value of several words is quoted: for a shell it is one.
    pub fn sysctl(what: impl Into<String>, name: &str, value: &str) -> Self {
        let words = if value.contains(' ') { format!("'{value}'") } else { value.to_owned() };
        Self {
            what: what.into(),
            now: vec![format!("sysctl -w {name}={words}")],
            for_good: vec![format!("echo '{name} = {value}' > /etc/sysctl.d/90-{name}.conf")],
        }
    }
}

impl Remedy {
    /// The same for the settings of a namespace that is entered so; nothing keeps these for good.
    #[must_use]
    pub fn entered_by(mut self, enter: &str) -> Self {
        if !enter.is_empty() {
            self.now.iter_mut().for_each(|command| command.insert_str(0, enter));
            self.for_good.clear();
        }
        self
    }
}

/// One finding. Fields are keys in JSON, in this order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
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
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
pub struct Unseen {
    /// What could not be seen.
    pub what: String,
    /// What it would take.
    pub needs: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_several_words_is_one_word_for_a_shell() {
        let remedy = Remedy::sysctl("wider", "net.ipv4.ip_local_port_range", "1024 65535");
        assert_eq!(remedy.now, ["sysctl -w net.ipv4.ip_local_port_range='1024 65535'"]);
        let line = "echo 'net.ipv4.ip_local_port_range = 1024 65535' > ";
        assert!(remedy.for_good[0].starts_with(line), "{remedy:?}");
        let inside = remedy.entered_by("ip netns exec n1 ");
        assert!(inside.now[0].starts_with("ip netns exec n1 sysctl -w "), "{inside:?}");
        assert!(inside.for_good.is_empty());
        assert_eq!(Remedy::sysctl("on", "a.b", "1").now, ["sysctl -w a.b=1"]);
    }
}
