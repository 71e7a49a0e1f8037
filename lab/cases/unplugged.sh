# A disk is pulled out while packets are recorded, then a second one: nothing is lost.
#: short
#: disks 6 x 64M scsi
create 2 "$(disk 0)" "$(disk 1)" "$(disk 2)" "$(disk 3)" "$(disk 4)" "$(disk 5)"
record
send 4000 4000
unplug 5
send 6000 4000
unplug 3
send 6000 4000
stop 1
expelled 5
expelled 3
all_there
does 0 verify
