# Two members miss a part of a recording: resilver gives it back, and two others may fail then.
#: short
#: disks 6 x 64M
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 4000 4000
exchange 4 error
exchange 5 error
send 8000 4000
stop 1
healthy 4
healthy 5
does 1 status
does 0 resilver
does 0 status
does 0 scrub
all_there_without 1 2
does 0 verify
