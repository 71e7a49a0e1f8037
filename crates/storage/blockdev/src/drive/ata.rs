//! Identity and health of an ATA drive, through the SCSI layer of the kernel.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::command::ioctl;
use super::figures::{Health, Recording};

/// `SG_IO`, and the values of `struct sg_io_hdr`: scsi/sg.h.
const SG_IO: libc::c_ulong = 0x2285;
const FROM_DEVICE: i32 = -3;
const TIMEOUT_MS: u32 = 2000;
/// A check condition whose sense data carries the registers that were asked for.
const DRIVER_SENSE: u16 = 0x08;

const SECTOR: usize = 512;
const SENSE: usize = 32;
/// ATA PASS-THROUGH (16): SAT-4.
const PASS_THROUGH: u8 = 0x85;
const PIO_DATA_IN: u8 = 4 << 1;
const NON_DATA: u8 = 3 << 1;
/// Transfer length in the sector count, in blocks, from the device.
const ONE_BLOCK_IN: u8 = 0x0e;
/// Give the registers back in sense data.
const CHECK: u8 = 0x20;
/// Commands of ACS-4.
const IDENTIFY: u8 = 0xec;
const SMART: u8 = 0xb0;
const SMART_READ_DATA: u8 = 0xd0;
const SMART_RETURN_STATUS: u8 = 0xda;
/// Every SMART command has these in its registers; a failing drive answers with the others.
const SMART_KEY: (u8, u8) = (0x4f, 0xc2);
const SMART_FAILING: (u8, u8) = (0xf4, 0x2c);

/// `struct sg_io_hdr`: scsi/sg.h.
#[repr(C)]
struct Header {
    interface_id: i32,
    direction: i32,
    command_len: u8,
    sense_len_max: u8,
    segments: u16,
    data_len: u32,
    data: *mut u8,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    user: *mut u8,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_len: u8,
    host_status: u16,
    driver_status: u16,
    residual: i32,
    duration_ms: u32,
    info: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Header>() == 88);

/// The answer to IDENTIFY DEVICE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    pub(super) turns_per_min: Option<u32>,
    pub(super) recording: Recording,
}

pub(super) fn identify(fd: &OwnedFd) -> Result<Identity, Errno> {
    let (data, _) = command(fd, &read_sector(IDENTIFY, 0, (0, 0)))?;
    Ok(decode_identity(&data))
}

pub(super) fn health(fd: &OwnedFd) -> Result<(Health, Option<i32>), Errno> {
    let (data, _) = command(fd, &read_sector(SMART, SMART_READ_DATA, SMART_KEY))?;
    let (mut health, temperature_c) = decode_attributes(&data);
    let mut ask = [0; 16];
    let (middle, high) = SMART_KEY;
    for (at, byte) in [
        (0, PASS_THROUGH),
        (1, NON_DATA),
        (2, CHECK),
        (4, SMART_RETURN_STATUS),
        (10, middle),
        (12, high),
        (14, SMART),
    ] {
        *ask.get_mut::<usize>(at).expect("16 bytes") = byte;
    }
    let (_, sense) = command(fd, &ask)?;
    health.is_failing = is_failing(&sense);
    Ok((health, temperature_c))
}

fn read_sector(command: u8, feature: u8, (middle, high): (u8, u8)) -> [u8; 16] {
    let mut ask = [0; 16];
    for (at, byte) in [
        (0, PASS_THROUGH),
        (1, PIO_DATA_IN),
        (2, ONE_BLOCK_IN),
        (4, feature),
        (6, 1),
        (10, middle),
        (12, high),
        (14, command),
    ] {
        *ask.get_mut::<usize>(at).expect("16 bytes") = byte;
    }
    ask
}

/// Has the drive run a command; its data and its sense data.
fn command(fd: &OwnedFd, ask: &[u8; 16]) -> Result<([u8; SECTOR], [u8; SENSE]), Errno> {
    let (mut data, mut sense) = ([0_u8; SECTOR], [0_u8; SENSE]);
    let has_data = ask.get(1) == Some(&PIO_DATA_IN);
    let mut header = Header {
        interface_id: i32::from(b'S'),
        direction: if has_data { FROM_DEVICE } else { -1 },
        command_len: 16,
        sense_len_max: u8::try_from(SENSE).expect("32"),
        segments: 0,
        data_len: if has_data { u32::try_from(SECTOR).expect("512") } else { 0 },
        data: data.as_mut_ptr(),
        command: ask.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: TIMEOUT_MS,
        flags: 0,
        pack_id: 0,
        user: core::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_len: 0,
        host_status: 0,
        driver_status: 0,
        residual: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: the header is laid out as the kernel's; command, data and sense have the bytes that
    // it names and live beyond the call.
    unsafe { ioctl(fd, SG_IO, &mut header) }?;
    let is_sense_only = header.driver_status & !DRIVER_SENSE == 0 && header.host_status == 0;
    let is_done = header.status == 0 || (!has_data && header.status == 2);
    if is_sense_only && is_done { Ok((data, sense)) } else { Err(Errno::OPNOTSUPP) }
}

/// A sector, read as all that it might be.
pub(super) fn decode(sector: &[u8; SECTOR]) -> (Health, Option<i32>) {
    let (mut health, temperature_c) = decode_attributes(sector);
    let turns = decode_identity(sector).turns_per_min;
    let sense = sector.first_chunk().is_some_and(is_failing);
    health.is_failing = sense || turns == Some(0);
    (health, temperature_c)
}

/// ACS-4, IDENTIFY DEVICE data: word 217 is the nominal media rotation rate, word 69 has the zoned
/// capabilities in its lowest two bits.
fn decode_identity(data: &[u8; SECTOR]) -> Identity {
    let (words, _) = data.as_chunks::<2>();
    let word = |at: usize| words.get(at).map_or(0, |bytes| u16::from_le_bytes(*bytes));
    Identity {
        turns_per_min: match word(217) {
            1 => Some(0),
            turns @ 0x0401..=0xfffe => Some(u32::from(turns)),
            _ => None,
        },
        recording: match word(69) & 3 {
            1 => Recording::HostAware,
            2 => Recording::DriveManaged,
            _ => Recording::NotTold,
        },
    }
}

/// Attributes are vendors' own, but these numbers mean the same with all who have them: 30 entries
/// of 12 bytes from byte 2 on, number first, raw value in bytes 5 to 10.
fn decode_attributes(data: &[u8; SECTOR]) -> (Health, Option<i32>) {
    let (entries, _) = data.get(2..362).unwrap_or_default().as_chunks::<12>();
    let raw = |number: u8| {
        let entry = entries.iter().find(|entry| entry.first() == Some(&number))?;
        let [_, _, _, _, _, r0, r1, r2, r3, r4, r5, _] = *entry;
        Some(u64::from_le_bytes([r0, r1, r2, r3, r4, r5, 0, 0]))
    };
    // Some keep the lowest and the highest in the upper bytes.
    let low_byte = |value: u64| i32::try_from(value & 0xff).ok();
    let health = Health {
        is_failing: false,
        used_percent: None,
        media_errors: raw(198),
        reallocated: raw(5),
        pending: raw(197),
        // The upper bytes may count parts of an hour.
        power_on_hours: raw(9).map(|value| value & 0xffff_ffff),
        written_bytes: None,
        unsafe_shutdowns: raw(192),
    };
    (health, raw(194).or_else(|| raw(190)).and_then(low_byte))
}

/// The registers stand in a descriptor of kind 9 in the sense data: SAT-4, ATA Status Return.
fn is_failing(sense: &[u8; SENSE]) -> bool {
    let descriptors = sense.get(8..).unwrap_or_default();
    match *descriptors {
        [9, 12, _, _, _, _, _, _, _, middle, _, high, ..] => (middle, high) == SMART_FAILING,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(word_69: u16, word_217: u16) -> Identity {
        let mut data = [0; SECTOR];
        data[138..140].copy_from_slice(&word_69.to_le_bytes());
        data[434..436].copy_from_slice(&word_217.to_le_bytes());
        decode_identity(&data)
    }

    #[test]
    fn rotation_and_shingles_are_told_by_their_words() {
        let turning = identity(0, 7200);
        assert_eq!((turning.turns_per_min, turning.recording), (Some(7200), Recording::NotTold));
        assert_eq!(identity(0xfff2, 5400).recording, Recording::DriveManaged);
        assert_eq!(identity(1, 0).recording, Recording::HostAware);
        assert_eq!((identity(0, 1).turns_per_min, identity(0, 0).turns_per_min), (Some(0), None));
    }

    #[test]
    fn attributes_are_found_wherever_they_stand() {
        let mut data = [0; SECTOR];
        let attributes =
            [(9_u8, 0x77_0000_2230_u64), (194, 0x0000_0030_0012_0026), (5, 8), (197, 2)];
        for (place, (number, raw)) in attributes.into_iter().enumerate() {
            let at = 2 + 12 * place;
            data[at] = number;
            data[at + 5..at + 11].copy_from_slice(&raw.to_le_bytes()[..6]);
        }
        let (health, temperature_c) = decode_attributes(&data);
        assert_eq!((health.power_on_hours, temperature_c), (Some(8752), Some(38)));
        assert_eq!(
            (health.reallocated, health.pending, health.media_errors),
            (Some(8), Some(2), None)
        );
    }

    #[test]
    fn a_drive_that_fails_says_so_in_its_registers() {
        let mut sense = [0; SENSE];
        sense[0] = 0x72;
        sense[8..20].copy_from_slice(&[9, 12, 0, 0, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2]);
        assert!(!is_failing(&sense));
        (sense[17], sense[19]) = SMART_FAILING;
        assert!(is_failing(&sense));
    }
}
