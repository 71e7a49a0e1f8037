//! Five-tuple to session record: a pure state machine; time comes in as an argument.
