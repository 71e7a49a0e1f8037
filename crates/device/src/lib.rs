//! Blocks out: direct I/O through io_uring, threads or buffered; memory and faulty twins.
