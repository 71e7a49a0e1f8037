# A member stands still for 5 s: it is expelled after 2 s, and nothing is lost.
#: short
#: disks 6 x 64M
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 2000 4000
dmsetup suspend --noflush --nolockfs m3
send 20000 4000
dmsetup resume m3
send 2000 4000
stop 1
all_there
does 0 verify
expelled 3
