//! A block device, as the kernel numbers it.

use core::fmt;

/// A block device, as the kernel numbers it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DeviceNumber {
    /// Of its driver.
    pub major: u32,
    /// Of the device.
    pub minor: u32,
}

impl DeviceNumber {
    /// The number that stat(2) gives.
    pub fn of_stat(number: u64) -> Self {
        Self { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
    }

    /// The kernel's own form, twelve bits and twenty (`include/linux/kdev_t.h`).
    pub fn of_kernel(number: u32) -> Self {
        Self { major: number >> 20, minor: number & 0xf_ffff }
    }

    /// For the kernel, in its own form.
    pub fn to_kernel(self) -> u32 {
        self.major << 20 | self.minor
    }
}

/// `254:0`.
impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl core::str::FromStr for DeviceNumber {
    type Err = core::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.trim().split_once(':').unwrap_or((text, ""));
        Ok(Self { major: major.parse()?, minor: minor.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_have_twelve_and_twenty_bits() {
        let device = DeviceNumber { major: 259, minor: 1_000_000 };
        assert_eq!(DeviceNumber::of_kernel(device.to_kernel()), device);
        assert_eq!(device.to_string().parse(), Ok(device));
        assert!("btrfs-1".parse::<DeviceNumber>().is_err());
        assert_eq!(DeviceNumber::of_stat(rustix::fs::makedev(254, 3)).to_string(), "254:3");
    }
}
