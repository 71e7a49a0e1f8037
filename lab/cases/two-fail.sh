# Two of six members fail, one after the other and in two ways: no packet is lost.
#: short
#: disks 6 x 64M
#: modules dm-flakey
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 4000 4000
# Writes fail, reads work: a disk that has run out of spare sectors.
exchange 4 flakey "$(disk 4)" 0 0 3600 1 error_writes
send 6000 4000
exchange 1 error
send 6000 4000
stop 1
expelled 4
expelled 1
all_there
# Both are still ill: readers compute what they do not get.
does 0 verify
