# One member dies, one is pulled out: new disks take their places, and two others may fail then.
#: disks 8 x 64M
for number in 0 1 2 3 4 6 7; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 "$(disk 5)"
record
send 4000 4000
exchange 4 error
unplug 5
send 8000 4000
stop 1
does 1 status
does 0 replace 4 /dev/mapper/m6 --raw
does 0 replace 5 /dev/mapper/m7 --raw
does 0 status
does 0 scrub
all_there_without 1 2
does 0 verify
