# A volume on a mirror of md: what goes in comes out.
#: disks 2 x 128M
#: modules raid1
#: needs mdadm
mdadm --create /dev/md0 --run --level 1 --raid-devices 2 --bitmap none \
    --assume-clean "$(disk 0)" "$(disk 1)"
roundtrip 0 /dev/md0
