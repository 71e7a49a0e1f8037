# Members on dm-crypt (AES-XTS, sectors of 4096 bytes): what goes in comes out.
#: disks 3 x 64M
#: modules dm-crypt xts aes_generic ecb sha256_generic
#: needs dmsetup
key=$(seq 64 | md5sum | cut -c 1-32)$(seq 65 | md5sum | cut -c 1-32)
for number in 0 1 2; do
    dmsetup create "c$number" --table "0 $(sectors "$(disk $number)") crypt aes-xts-plain64 \
        $key 0 $(disk $number) 0 1 sector_size:4096"
done
roundtrip 1 /dev/mapper/c0 /dev/mapper/c1 /dev/mapper/c2
