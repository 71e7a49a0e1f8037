//! Capture to volume, session and index: the recording job.
