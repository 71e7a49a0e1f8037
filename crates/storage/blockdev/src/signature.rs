//! Recognises what other programs left on a target, so that it is not overwritten by mistake.
//!
//! The magic numbers and places are those of libblkid (util-linux, libblkid/src/superblocks and
//! partitions). A hit is a reason to ask, not a proof; the weak ones (two bytes) are checked for
//! plausible fields too.

use core::fmt;

/// What was found, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Usual name of the content.
    pub kind: &'static str,
    /// Of its magic number, in bytes from the start of the target.
    pub offset: u64,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (found at byte {})", self.kind, self.offset)
    }
}

/// Reads are whole rows of this size at multiples of it, as direct I/O wants them.
const ROW: u64 = 4096;

/// Bytes at a fixed place, for a kind.
struct Magic {
    kind: &'static str,
    offset: u64,
    bytes: &'static [u8],
}

const fn magic(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { kind, offset, bytes }
}

const MD: &[u8] = b"\xfc\x4e\x2b\xa9";

/// In order: what contains other things comes before what it may contain.
const MAGICS: &[Magic] = &[
    magic("LUKS", 0, b"LUKS\xba\xbe"),
    magic("LUKS (second header)", 0x4000, b"SKUL\xba\xbe"),
    magic("LVM2 physical volume", 0, b"LABELONE"),
    magic("LVM2 physical volume", 512, b"LABELONE"),
    magic("LVM2 physical volume", 1024, b"LABELONE"),
    magic("LVM2 physical volume", 1536, b"LABELONE"),
    magic("Linux RAID member (1.1)", 0, MD),
    magic("Linux RAID member (1.2)", 4096, MD),
    magic("bcache", 0x1018, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    magic("bcachefs", 0x1018, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    magic("Ceph BlueStore", 0, b"bluestore block device"),
    magic("VMFS", 0x10_0000, b"\x0d\xd0\x01\xc0"),
    magic("XFS", 0, b"XFSB"),
    magic("btrfs", 0x1_0040, b"_BHRfS_M"),
    magic("F2FS", 0x400, b"\x10\x20\xf5\xf2"),
    magic("EROFS", 0x400, b"\xe2\xe1\xf5\xe0"),
    magic("ReiserFS", 0x1_0034, b"ReIsEr"),
    magic("JFS", 0x8000, b"JFS1"),
    magic("SquashFS", 0, b"hsqs"),
    magic("ISO 9660", 0x8001, b"CD001"),
    magic("UDF", 0x8001, b"BEA01"),
    magic("exFAT", 3, b"EXFAT   "),
    magic("NTFS", 3, b"NTFS    "),
    magic("BitLocker", 3, b"-FVE-FS-"),
    magic("FAT", 54, b"FAT12   "),
    magic("FAT", 54, b"FAT16   "),
    magic("FAT", 82, b"FAT32   "),
    magic("swap", 4096 - 10, b"SWAPSPACE2"),
    magic("swap", 16384 - 10, b"SWAPSPACE2"),
    magic("swap", 65536 - 10, b"SWAPSPACE2"),
    magic("suspended system", 4096 - 10, b"S1SUSPEND"),
    magic("suspended system", 4096 - 10, b"S2SUSPEND"),
    magic("suspended system", 4096 - 10, b"LINHIB0001"),
    magic("GPT partition table", 512, b"EFI PART"),
    magic("GPT partition table", 4096, b"EFI PART"),
];

/// The first sign of other content on a target of `size_bytes`, read by rows of 4096 bytes at
/// multiples of 4096.
pub fn probe<E>(
    size_bytes: u64,
    read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<Signature>, E> {
    Ok(probe_all(size_bytes, read)?.into_iter().next())
}

/// All signs of other content, each kind once: one program's may lie behind another's, and who
/// agrees to the loss of one has not agreed to that of the other.
pub fn probe_all<E>(
    size_bytes: u64,
    read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<Signature>, E> {
    let mut target = Target { size_bytes, read };
    let mut all: Vec<Signature> = Vec::new();
    for magic in MAGICS {
        let is_new = all.iter().all(|found| base(found.kind) != base(magic.kind));
        if is_new && target.holds(magic.offset, magic.bytes)? {
            all.push(Signature { kind: magic.kind, offset: magic.offset });
        }
    }
    for check in [Target::ext, Target::md_at_end, Target::zfs, Target::backup_gpt, Target::mbr] {
        let found = check(&mut target)?;
        all.extend(found.filter(|new| !all.iter().any(|old| is_part(new.kind, old.kind))));
    }
    Ok(all)
}

/// A kind without what distinguishes its places.
fn base(kind: &str) -> &str {
    kind.split(" (").next().unwrap_or(kind)
}

/// Whether one is a copy of the other, or written with it: every GPT has an MBR before it.
fn is_part(kind: &str, of: &str) -> bool {
    base(kind) == base(of) || (kind.starts_with("MBR") && of.starts_with("GPT"))
}

struct Target<R> {
    size_bytes: u64,
    read: R,
}

type Found<E> = Result<Option<Signature>, E>;

impl<E, R: FnMut(u64, &mut [u8]) -> Result<(), E>> Target<R> {
    /// The bytes at `offset`, which lie in one row; `None` beyond the end.
    fn bytes<const N: usize>(&mut self, offset: u64) -> Result<Option<[u8; N]>, E> {
        let (row, within) = (offset - offset % ROW, offset % ROW);
        if row.checked_add(ROW).is_none_or(|end| end > self.size_bytes) {
            return Ok(None);
        }
        let mut bytes = [0; 4096];
        (self.read)(row, &mut bytes)?;
        let within = usize::try_from(within).expect("less than a row");
        Ok(bytes.get(within..).and_then(<[u8]>::first_chunk).copied())
    }

    fn holds(&mut self, offset: u64, magic: &[u8]) -> Result<bool, E> {
        let bytes: Option<[u8; 32]> = self.bytes(offset - offset % 32)?;
        let within = usize::try_from(offset % 32).expect("less than 32");
        if let Some(rest) = bytes.as_ref().and_then(|bytes| bytes.get(within..within + magic.len()))
        {
            return Ok(rest == magic);
        }
        // The magic crosses a boundary of 32 bytes; no row ends within one.
        for (index, &byte) in (0..).zip(magic) {
            if self.bytes(offset + index)? != Some([byte]) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// ext2, ext3 and ext4 differ by feature bits only. Two bytes of magic: block size, inode count
    /// and revision must make sense as well.
    fn ext(&mut self) -> Found<E> {
        let Some(superblock) = self.bytes::<80>(1024)? else { return Ok(None) };
        let word = |at: usize| {
            let bytes = superblock.get(at..).and_then(<[u8]>::first_chunk);
            u32::from_le_bytes(*bytes.expect("the superblock has 80 bytes"))
        };
        let plausible = word(0) > 0 && word(24) <= 6 && word(76) <= 1;
        let found = word(56) & 0xffff == 0xef53 && plausible;
        Ok(found.then_some(Signature { kind: "ext2/ext3/ext4", offset: 1024 + 56 }))
    }

    /// md 0.90 lies in the last whole 64 KiB, md 1.0 at least 8 KiB before the end:
    /// drivers/md/md.c.
    fn md_at_end(&mut self) -> Found<E> {
        let old = (self.size_bytes & !0xffff).checked_sub(0x1_0000);
        let new = (self.size_bytes / 512).checked_sub(16).map(|sector| (sector & !7) * 512);
        for (kind, offset) in [("Linux RAID member (0.90)", old), ("Linux RAID member (1.0)", new)]
        {
            if let Some(offset) = offset
                && self.holds(offset, MD)?
            {
                return Ok(Some(Signature { kind, offset }));
            }
        }
        Ok(None)
    }

    /// Four labels of 256 KiB; the second half of each is a ring of uberblocks, at least 1 KiB
    /// apart.
    fn zfs(&mut self) -> Found<E> {
        const LABEL: u64 = 256 << 10;
        let end = self.size_bytes & !(LABEL - 1);
        let ends = [end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
        for label in [Some(0), Some(LABEL)].into_iter().chain(ends).flatten() {
            for offset in (label + LABEL / 2..label + LABEL).step_by(4096) {
                let Some(row) = self.bytes::<4096>(offset)? else { continue };
                let magics = row.chunks_exact(1024).filter_map(<[u8]>::first_chunk);
                let is_magic = |&magic: &[u8; 8]| {
                    [u64::from_le_bytes(magic), u64::from_be_bytes(magic)].contains(&0x00ba_b10c)
                };
                if magics.into_iter().any(is_magic) {
                    return Ok(Some(Signature { kind: "ZFS", offset }));
                }
            }
        }
        Ok(None)
    }

    fn backup_gpt(&mut self) -> Found<E> {
        for sector in [512, 4096] {
            let Some(offset) = self.size_bytes.checked_sub(sector) else { continue };
            if self.holds(offset, b"EFI PART")? {
                return Ok(Some(Signature { kind: "GPT partition table (backup)", offset }));
            }
        }
        Ok(None)
    }

    /// 55 AA ends many first sectors; a table also has only valid boot flags and a used entry.
    fn mbr(&mut self) -> Found<E> {
        let Some(table) = self.bytes::<66>(446)? else { return Ok(None) };
        let (entries, end) = table.as_chunks::<16>();
        let mut used = false;
        for &[flag, _, _, _, kind, _, _, _, _, _, _, _, s0, s1, s2, s3] in entries {
            if flag & 0x7f != 0 {
                return Ok(None);
            }
            used |= kind != 0 && u32::from_le_bytes([s0, s1, s2, s3]) > 0;
        }
        let found = used && end == b"\x55\xaa";
        Ok(found.then_some(Signature { kind: "MBR partition table", offset: 510 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe_image(image: &[u8]) -> Option<Signature> {
        let read = |offset: u64, into: &mut [u8]| -> Result<(), ()> {
            assert!(offset.is_multiple_of(4096) && into.len() == 4096);
            into.copy_from_slice(&image[usize::try_from(offset).unwrap()..][..4096]);
            Ok(())
        };
        probe(u64::try_from(image.len()).unwrap(), read).unwrap()
    }

    fn image_with(offset: u64, bytes: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 4 << 20];
        image[usize::try_from(offset).unwrap()..][..bytes.len()].copy_from_slice(bytes);
        image
    }

    #[test]
    fn every_magic_is_found_at_its_place_and_only_there() {
        for magic in MAGICS {
            let found = probe_image(&image_with(magic.offset, magic.bytes)).unwrap();
            assert_eq!((found.kind, found.offset), (magic.kind, magic.offset));
            assert_eq!(probe_image(&image_with(magic.offset + 40, magic.bytes)), None, "{found}");
        }
    }

    #[test]
    fn what_lies_at_the_end_is_found() {
        let size: u64 = 4 << 20;
        for (kind, offset, bytes) in [
            ("Linux RAID member (0.90)", size - 0x1_0000, MD),
            ("Linux RAID member (1.0)", size - 8192, MD),
            ("ZFS", 128 << 10, b"\x0c\xb1\xba\0\0\0\0\0"),
            ("ZFS", size - (100 << 10), b"\0\0\0\0\0\xba\xb1\x0c"),
            ("GPT partition table (backup)", size - 512, b"EFI PART"),
            ("GPT partition table (backup)", size - 4096, b"EFI PART"),
        ] {
            assert_eq!(probe_image(&image_with(offset, bytes)), Some(Signature { kind, offset }));
        }
    }

    #[test]
    fn what_lies_behind_something_else_is_found_too() {
        let mut image =
            image_with(0x1018, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81");
        image[512..520].copy_from_slice(b"EFI PART");
        let end = image.len() - 8192;
        image[end..end + 4].copy_from_slice(MD);
        let read = |offset: u64, into: &mut [u8]| -> Result<(), ()> {
            into.copy_from_slice(&image[usize::try_from(offset).unwrap()..][..4096]);
            Ok(())
        };
        let all = probe_all(u64::try_from(image.len()).unwrap(), read).unwrap();
        let kinds: Vec<&str> = all.iter().map(|found| found.kind).collect();
        assert_eq!(kinds, ["bcache", "GPT partition table", "Linux RAID member (1.0)"]);
    }

    #[test]
    fn a_boot_sector_without_partitions_is_not_a_table() {
        let mut image = image_with(510, b"\x55\xaa");
        assert_eq!(probe_image(&image), None);
        image[446 + 4] = 0x83;
        image[446 + 12] = 8;
        assert_eq!(probe_image(&image).unwrap().kind, "MBR partition table");
        image[446 + 16] = 1;
        assert_eq!(probe_image(&image), None);
    }

    #[test]
    fn zeros_noise_and_tiny_targets_are_empty() {
        assert_eq!(probe_image(&vec![0; 4 << 20]), None);
        assert_eq!(probe_image(&vec![0xff; 4 << 20]), None);
        assert_eq!(probe_image(&[0; 4096]), None);
        assert_eq!(probe_image(&[]), None);
    }
}
