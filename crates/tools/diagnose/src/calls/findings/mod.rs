//! What is wrong with how programs use the kernel.

mod files;
mod locks;
mod measure;
mod network;
mod processors;
mod slow;

use ::calls::CallWatch;

use findings::Finding;

pub(super) fn all(watch: &CallWatch) -> Vec<Finding> {
    let mut findings = files::findings(watch);
    findings.extend(locks::findings(watch));
    findings.extend(network::findings(watch));
    findings.extend(processors::findings(watch));
    findings
}
