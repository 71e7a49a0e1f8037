# A member changes a byte of every write: extracts are whole, verify names it, scrub repairs.
#: disks 6 x 64M
#: modules dm-flakey
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
# The kernel changes the bytes in place, in the memory of the recorder: its indexer may read them.
record_options=--no-index
record
send 4000 4000
exchange 3 flakey "$(disk 3)" 0 0 3600 5 corrupt_bio_byte 5000 w 165 0
send 4000 4000
healthy 3
send 4000 4000
stop 0
all_there
does 1 verify
does 0 scrub
does 0 verify
all_there
