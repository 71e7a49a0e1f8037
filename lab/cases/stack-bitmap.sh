# The same stack with a bitmap in place of the journal: less is written, and md mends the disk.
#: short
#: disks 4 x 64M
#: modules dm-integrity raid456 dm-crypt xts aes_generic ecb sha256_generic ext4
#: needs integritysetup mdadm mke2fs
mends bitmap
