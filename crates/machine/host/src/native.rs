//! Numbers in the order of this machine, which is that of its kernel: in messages of netlink(7),
//! records of `perf_event_open(2)` and events of `fanotify(7)`. Everything else has an order of its
//! own, so nothing but what is exchanged with the kernel may use this.

/// A number of 32 bits for the kernel.
#[expect(clippy::host_endian_bytes, reason = "the kernel of this machine is asked")]
pub fn u32_bytes(value: u32) -> [u8; 4] {
    value.to_ne_bytes()
}

/// A number of 32 bits from the kernel.
#[expect(clippy::host_endian_bytes, reason = "the kernel of this machine answers")]
pub fn u32_of(bytes: [u8; 4]) -> u32 {
    u32::from_ne_bytes(bytes)
}

/// A number of 64 bits for the kernel.
#[expect(clippy::host_endian_bytes, reason = "the kernel of this machine asks")]
pub fn u64_bytes(value: u64) -> [u8; 8] {
    value.to_ne_bytes()
}

/// A number of 64 bits from the kernel.
#[expect(clippy::host_endian_bytes, reason = "the kernel of this machine answers")]
pub fn u64_of(bytes: [u8; 8]) -> u64 {
    u64::from_ne_bytes(bytes)
}

/// A number of 32 bits with a sign from the kernel: an error's, above all.
#[expect(clippy::host_endian_bytes, reason = "the kernel of this machine answers")]
pub fn i32_of(bytes: [u8; 4]) -> i32 {
    i32::from_ne_bytes(bytes)
}
