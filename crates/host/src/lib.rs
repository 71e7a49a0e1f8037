//! The rest of the operating system: clocks, signals, mounts, signatures, directories.
