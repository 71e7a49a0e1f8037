//! What is wrong with sockets: each file one kind of finding, over the same groups of connections
//! that should be alike.

mod group;
mod limits;
mod loss;
mod modes;
mod options;
mod queue;
mod window;

use super::watch::Watch;
use crate::finding::Finding;

/// All findings, in no order.
pub(super) fn all(watch: &Watch) -> Vec<Finding> {
    let groups = group::of(watch);
    let mut findings = queue::findings(watch);
    findings.extend(loss::findings(watch));
    let told = group::came_here(&groups);
    for group in &groups {
        findings.extend(options::finding(watch, group, &told));
        findings.extend(window::finding(watch, group));
        findings.extend(modes::finding(watch, group));
        findings.extend(limits::findings(watch, group));
    }
    findings
}
