//! What is measured, and the limits.

/// One rule of the shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Files of a crate from which a way leads back to them.
    FilesInCircles,
    /// Other files of its crate that a file uses items of.
    FilesUsed,
    /// Lines of a crate.
    CrateLines,
    /// Lines of one function.
    FunctionLines,
    FunctionLinesP50,
    FunctionLinesP90,
    ParametersP90,
}

impl Rule {
    /// The highest figure that is right.
    pub(super) const fn limit(self) -> usize {
        match self {
            Rule::FilesInCircles => 0,
            Rule::FilesUsed => 12,
            Rule::CrateLines => 8000,
            Rule::FunctionLines => 70,
            Rule::FunctionLinesP50 => 8,
            Rule::FunctionLinesP90 => 25,
            Rule::ParametersP90 => 4,
        }
    }

    /// What the figure counts, to follow it in a finding.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Rule::FilesInCircles => "files in circles",
            Rule::FilesUsed => "other files of the crate used",
            Rule::CrateLines => "lines without tests",
            Rule::FunctionLines => "lines of code",
            Rule::FunctionLinesP50 => "lines in half of the functions",
            Rule::FunctionLinesP90 => "lines in 90 % of the functions",
            Rule::ParametersP90 => "parameters in 90 % of the functions",
        }
    }
}

/// One figure of one crate, file or function, or of all code.
pub(super) struct Figure {
    pub(super) rule: Rule,
    pub(super) place: String,
    pub(super) value: usize,
    /// What makes the figure, to say with a finding; empty where the figure says it all.
    pub(super) detail: String,
}
