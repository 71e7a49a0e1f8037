# A member lies on a thin pool that runs full: the member is expelled, and nothing is lost.
#: disks 6 x 64M
#: modules dm-thin-pool
for number in 0 1 2 3 4; do mapped $number; done
# The pool has a thirteenth of the space that it promises; its own records lie on the first MiB.
device=$(disk 5)
dmsetup create records --table "0 2048 linear $device 0"
dmsetup create room --table "0 10240 linear $device 2048"
dd if=/dev/zero of=/dev/mapper/records bs=4096 count=1 conv=fsync
dmsetup create pool \
    --table "0 10240 thin-pool /dev/mapper/records /dev/mapper/room 128 0 1 error_if_no_space"
dmsetup message pool 0 "create_thin 0"
dmsetup create m5 --table "0 131072 thin /dev/mapper/pool 0"
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
say "$(dmsetup status pool)"
record
send 30000 2000
stop 1
say "$(dmsetup status pool)"
expelled 5
# On a machine that is too busy it is the pool that is slow before it is full.
grep -q 'went on without member 5 .*cannot write' /tmp/record.out ||
    lack 'the pool did not run full'
does 0 verify
