//! Flags that many verbs share: values as they are written, fields and orders, keys, databases of
//! addresses, how a volume is read, and the volumes of a service in its place, with what its
//! answer came to.

pub mod answered;
pub mod arguments;
pub mod atlas;
pub mod fields;
pub mod reading;
pub mod remote;

use verbs::{failure, progress, recorder};
