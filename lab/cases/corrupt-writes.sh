# A member changes a byte of every write: extracts repair it from parity, verify names it.
#: disks 6 x 64M
#: modules dm-flakey
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 4000 4000
exchange 3 flakey "$(disk 3)" 0 0 3600 5 corrupt_bio_byte 5000 w 165 0
send 4000 4000
healthy 3
send 4000 4000
stop 0
all_there
verified 1
