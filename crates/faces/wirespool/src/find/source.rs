//! Where sessions are sought.

use ::extract::Options;
use ::remote::There;

/// Where sessions are sought.
pub(super) enum Source {
    Here(Options),
    There(Box<There>),
}
