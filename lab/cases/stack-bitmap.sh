# The same stack with a bitmap in place of the journal: less is written, and md mends the disk.
#: short
#: disks 4 x 64M
#: modules dm-integrity raid456 dm-crypt xts aes_generic ecb sha256_generic ext4
#: needs integritysetup mdadm mke2fs
stack bitmap
stored 24
rot 1 8
same || fail 'the file came back wrong'
[ "$(mended)" -gt 0 ] || fail 'md saw no error'
say "md mended what dm-integrity found: $(mended) errors of members, the file is whole"
scrubbed check
rot 2 8
rot 3 8
same || fail 'the file came back wrong with two disks that rot'
say 'two more disks rot in the same place: the file is whole'
