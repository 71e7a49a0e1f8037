# A disk is pulled out while packets are recorded, and plugged in again: it is taken back, whole.
#: disks 6 x 64M scsi
create 2 "$(disk 0)" "$(disk 1)" "$(disk 2)" "$(disk 3)" "$(disk 4)" "$(disk 5)"
record
send 4000 4000
unplug 5
send 8000 4000
does 1 status
plug 5
send 4000 4000
until_true 60 wirespool status "$volume"
send 4000 4000
stop 1
expelled 5
grep -q '^member 5 .* is back' /tmp/record.out || fail 'it does not say that it is back'
all_there
does 0 status
does 0 scrub
# What it was given back is there when others are not.
unplug 3
unplug 4
all_there
does 0 verify
