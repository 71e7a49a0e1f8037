//! What a filter of system calls is put together from.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

pub(super) type Result<T> = core::result::Result<T, seccompiler::Error>;
pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;
pub(super) type Condition = core::result::Result<SeccompCondition, seccompiler::BackendError>;

/// Commands of `fcntl` that change or ask a descriptor and nothing else.
pub(super) const OF_DESCRIPTORS: &[c_int] = &[
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GET_SEALS,
];

/// Flags of `clone` that leave a namespace.
#[expect(clippy::as_conversions, reason = "there is no other way in a constant")]
pub(super) const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// Calls with any arguments.
pub(super) fn whole(calls: &[c_long]) -> impl Iterator<Item = (i64, Vec<SeccompRule>)> {
    calls.iter().map(|&call| (call, Vec::new()))
}

/// One of these values of an argument.
pub(super) fn each_of(argument: u8, values: impl Iterator<Item = u64>) -> Result<Vec<SeccompRule>> {
    values.map(|value| rule([number(argument, SeccompCmpOp::Eq, value)])).collect()
}

/// What an argument of 32 bits is compared with.
pub(super) fn number(argument: u8, operator: SeccompCmpOp, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// An address that is not given.
pub(super) fn no_address(argument: u8) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
}

/// All of these hold.
pub(super) fn rule<const N: usize>(conditions: [Condition; N]) -> Result<SeccompRule> {
    let conditions = conditions.into_iter().collect::<core::result::Result<_, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}
