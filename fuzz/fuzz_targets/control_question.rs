//! A question to a control socket, in any parts.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::QUESTION, |input| host::untrusted::control_question(input));
