//! The health log of an `NVMe` drive.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::command::ioctl;
use super::figures::Health;

/// `NVME_IOCTL_ADMIN_CMD`, `_IOWR('N', 0x41, struct nvme_admin_cmd)`: `linux/nvme_ioctl.h`.
const ADMIN_COMMAND: libc::c_ulong = 0xc048_4e41;
const GET_LOG_PAGE: u8 = 0x02;
/// SMART / Health Information.
const HEALTH_LOG: u32 = 0x02;
const LOG_BYTES: usize = 512;
/// A drive that does not answer must not hold up a report.
const TIMEOUT_MS: u32 = 2000;

/// `struct nvme_passthru_cmd`: `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<Command>() == 72);

/// The log of the whole drive, and its temperature.
pub(super) fn health(fd: &OwnedFd) -> Result<(Health, Option<i32>), Errno> {
    let mut log = [0_u8; LOG_BYTES];
    let words = u32::try_from(LOG_BYTES / 4 - 1).expect("127");
    let address = log.as_mut_ptr().expose_provenance();
    let mut command = Command {
        opcode: GET_LOG_PAGE,
        namespace: u32::MAX,
        address: u64::try_from(address).expect("an address has at most 64 bits"),
        data_len: u32::try_from(LOG_BYTES).expect("512"),
        cdw10: words << 16 | HEALTH_LOG,
        timeout_ms: TIMEOUT_MS,
        ..Command::default()
    };
    // SAFETY: the command is laid out as the kernel's, and `log` has the bytes it names and lives
    // beyond the call.
    let status = unsafe { ioctl(fd, ADMIN_COMMAND, &mut command) }?;
    if status == 0 { Ok(decode(&log)) } else { Err(Errno::IO) }
}

/// NVM Express Base Specification, SMART / Health Information log page.
pub(super) fn decode(log: &[u8; LOG_BYTES]) -> (Health, Option<i32>) {
    let wide = |at: usize| {
        let bytes: Option<&[u8; 16]> = log.get(at..).and_then(<[u8]>::first_chunk);
        u64::try_from(u128::from_le_bytes(*bytes.expect("inside the log"))).unwrap_or(u64::MAX)
    };
    let [critical, kelvin_low, kelvin_high, _spare, _threshold, used, ..] = *log;
    let kelvin = u16::from_le_bytes([kelvin_low, kelvin_high]);
    // Thousands of 512 bytes.
    let written = wide(48).saturating_mul(512_000);
    let health = Health {
        is_failing: critical != 0,
        used_percent: Some(u64::from(used)),
        media_errors: Some(wide(160)),
        reallocated: None,
        pending: None,
        power_on_hours: Some(wide(128)),
        written_bytes: Some(written),
        unsafe_shutdowns: Some(wide(144)),
    };
    (health, (kelvin > 0).then(|| i32::from(kelvin) - 273))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_as_the_specification_lays_it_out() {
        let mut log = [0; LOG_BYTES];
        log[1..3].copy_from_slice(&311_u16.to_le_bytes());
        log[5] = 103;
        for (at, value) in [(48, 2_000_u128), (128, 8_760), (144, 12), (160, 3)] {
            log[at..at + 16].copy_from_slice(&value.to_le_bytes());
        }
        let (health, temperature_c) = decode(&log);
        assert_eq!(temperature_c, Some(38));
        assert!(!health.is_failing);
        assert_eq!((health.used_percent, health.media_errors), (Some(103), Some(3)));
        assert_eq!((health.power_on_hours, health.unsafe_shutdowns), (Some(8760), Some(12)));
        assert_eq!(health.written_bytes, Some(1_024_000_000));
        log[0] = 0x04;
        assert!(decode(&log).0.is_failing);
        log[48..64].fill(0xff);
        assert_eq!(decode(&log).0.written_bytes, Some(u64::MAX));
    }
}
