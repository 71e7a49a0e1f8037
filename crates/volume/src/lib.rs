//! The ring of stripes over member devices: create, mount, append, acknowledge, read, verify.
