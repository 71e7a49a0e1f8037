//! The query language over sessions: text to predicate.
