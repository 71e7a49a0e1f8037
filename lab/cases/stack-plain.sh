# md RAID 6 alone hands out what a rotten disk gives, and its repair makes it last.
#: disks 4 x 64M
#: modules raid456 dm-crypt xts aes_generic ecb sha256_generic ext4
#: needs mdadm mke2fs
stack plain
stored 24
rot 1 8
! same || fail 'md found out which disk rots: this case is out of date'
say 'md read the rotten disk without a word: the file came back wrong'
scrubbed check
[ "$(cat /sys/block/md0/md/mismatch_cnt)" -gt 0 ] || fail 'md check found nothing'
scrubbed repair
scrubbed check
! same || fail 'md repair chose the right data: this case is out of date'
say 'after repair the array agrees with itself, and the file is wrong for good'
