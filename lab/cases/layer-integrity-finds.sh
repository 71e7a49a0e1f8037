# A disk below dm-integrity rots: reads of it fail, extracts are whole, scrub repairs.
#: disks 3 x 64M
#: modules dm-integrity
#: needs integritysetup
for number in 0 1 2; do
    integritysetup format --batch-mode --no-wipe --sector-size 4096 "$(disk $number)"
    integritysetup open "$(disk $number)" "i$number" --integrity-recalculate
done
roundtrip 1 /dev/mapper/i0 /dev/mapper/i1 /dev/mapper/i2
dmsetup remove i1
# 64 KiB in the middle of what was recorded.
dd if=/dev/urandom of="$(disk 1)" bs=64K seek=40 count=1 conv=notrunc
sync
echo 3 >/proc/sys/vm/drop_caches
integritysetup open "$(disk 1)" i1
all_there
does 1 verify
does 0 scrub
does 0 verify
all_there
