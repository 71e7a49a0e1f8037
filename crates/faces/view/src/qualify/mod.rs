//! A qualification for people and programs: a summary for a terminal, a page of HTML, CSV and JSON.

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
pub use json::{comparison_json, qualification_json};
pub use plan::{qualify_plan, qualify_plan_json};
pub use text::{qualification, qualify_estimate};
pub use volume::{volume_qualification, volume_qualification_json};

#[cfg(test)]
mod tests;
