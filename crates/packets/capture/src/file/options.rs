//! How files are read.

/// How files are read.
#[derive(Clone, Default, Debug)]
pub struct FileOptions {
    /// Filter expression in the words of pcap-filter(7).
    pub filter: Option<String>,
    /// Most bytes kept of a packet; 0 is all that the file has.
    pub snaplen: u32,
}
