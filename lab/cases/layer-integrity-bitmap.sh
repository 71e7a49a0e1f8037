# Members on dm-integrity with a bitmap in place of a journal: what goes in comes out.
#: disks 3 x 64M
#: modules dm-integrity
#: needs integritysetup
for number in 0 1 2; do
    integritysetup format --batch-mode --no-wipe --sector-size 4096 "$(disk $number)"
    integritysetup open "$(disk $number)" "i$number" --integrity-recalculate \
        --integrity-bitmap-mode
done
roundtrip 1 /dev/mapper/i0 /dev/mapper/i1 /dev/mapper/i2
