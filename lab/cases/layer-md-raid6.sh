# A volume on RAID 6 of md, of which one disk fails: what goes in comes out.
#: disks 4 x 64M
#: modules raid456
#: needs mdadm
mdadm --create /dev/md0 --run --level 6 --raid-devices 4 --chunk 64 --assume-clean \
    "$(disk 0)" "$(disk 1)" "$(disk 2)" "$(disk 3)"
create 0 /dev/md0
record
send 4000 4000
mdadm /dev/md0 --fail "$(disk 2)"
send 4000 4000
stop 0
all_there
does 0 verify
