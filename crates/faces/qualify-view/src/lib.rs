//! What disks guarantee, in words, as tables, CSV and JSON, and on pages with plots.
//!
//! Functions take the reports of `qualify` and give text; nothing here prints, reads or decides.
//! Text from outside goes through [`page::safe`], whatever it goes to.

mod choice;
mod compare;
mod csv;
mod diff;
mod drive;
mod html;
mod json;
mod plan;
mod text;
mod volume;

pub use choice::choice;
pub use compare::comparison;
pub use csv::qualification_csv;
pub use diff::{qualification_diff, qualification_diff_json};
pub use html::{comparison_html, comparison_svg, qualification_html, qualification_svg};
pub use json::{ComparisonFile, QualificationFile, comparison_json, qualification_json};
pub use plan::{qualify_plan, qualify_plan_json};
pub use text::{qualification, qualify_estimate};
pub use volume::{volume_qualification, volume_qualification_json};

#[cfg(test)]
mod tests;
