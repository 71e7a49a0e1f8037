//! Reports as text, table and JSON: the only room that serializes.
