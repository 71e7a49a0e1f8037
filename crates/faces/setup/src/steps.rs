//! The steps in their order, and which of them are done.

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Step {
    Interfaces,
    Storage,
    Qualification,
    Geometry,
    Volume,
    Configuration,
    Service,
    FirstSession,
}

impl Step {
    pub(crate) const ALL: [Self; 8] = [
        Self::Interfaces,
        Self::Storage,
        Self::Qualification,
        Self::Geometry,
        Self::Volume,
        Self::Configuration,
        Self::Service,
        Self::FirstSession,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Interfaces => "interfaces",
            Self::Storage => "disks or folders",
            Self::Qualification => "qualification",
            Self::Geometry => "geometry",
            Self::Volume => "volume",
            Self::Configuration => "configuration",
            Self::Service => "service",
            Self::FirstSession => "first session",
        }
    }

    /// `Step 2 of 8: disks or folders`.
    pub(crate) fn heading(self) -> String {
        let place = Self::ALL.iter().take_while(|step| **step <= self).count();
        format!("\nStep {place} of {}: {}", Self::ALL.len(), self.title())
    }
}

/// What was done, step by step.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Log {
    done: Vec<(Step, String)>,
}

impl Log {
    pub(crate) fn note(&mut self, step: Step, what: impl Into<String>) {
        self.done.push((step, what.into()));
    }

    /// What is done and what is left, as lines.
    pub(crate) fn account(&self) -> String {
        let mut lines: Vec<String> = self
            .done
            .iter()
            .map(|(step, what)| format!("  done  {}: {what}", step.title()))
            .collect();
        let is_left = |step: &&Step| !self.done.iter().any(|(done, _)| done == *step);
        let left: Vec<&str> = Step::ALL.iter().filter(is_left).map(|step| step.title()).collect();
        if !left.is_empty() {
            lines.push(format!("  left  {}", left.join(", ")));
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_and_those_left_are_named() {
        assert_eq!(Step::Volume.heading(), "\nStep 5 of 8: volume");
        let mut log = Log::default();
        log.note(Step::Interfaces, "eth1");
        log.note(Step::Storage, "/data/volume");
        let account = log.account();
        assert!(account.starts_with("  done  interfaces: eth1\n  done  disks"), "{account}");
        let left = "  left  qualification, geometry, volume, configuration, service, first session";
        assert!(account.ends_with(left), "{account}");
    }
}
