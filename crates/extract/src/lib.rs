//! Query to index, volume and pcapng out: find and extract.
