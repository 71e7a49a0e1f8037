//! Create, inspect, verify: what is done to a volume besides recording and reading.
