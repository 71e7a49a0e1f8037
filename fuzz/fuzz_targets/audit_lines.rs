//! Any bytes may be given as the audit of a service.
#![no_main]

use fuzz::costs;

fuzz::text!(costs::AUDIT, |input| {
    fuzz::audit_lines::check(input);
});
