# A disk rots below dm-integrity with a journal, md RAID 6, dm-crypt and ext4: md mends it.
#: disks 4 x 64M
#: modules dm-integrity raid456 dm-crypt xts aes_generic ecb sha256_generic ext4
#: needs integritysetup mdadm mke2fs
mends journal
