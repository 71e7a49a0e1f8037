//! Segments of session rows as Parquet, their directory and cache.
