# All members stand still for 4 s: no member's fault, so none is expelled; nothing is lost.
#: disks 6 x 64M
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 2000 4000
# At once: on a busy machine one would stand still alone for long before the last one does.
suspending=
for number in 0 1 2 3 4 5; do
    dmsetup suspend --noflush --nolockfs m$number &
    suspending="$suspending $!"
done
wait $suspending
send 8000 2000
for number in 0 1 2 3 4 5; do dmsetup resume m$number; done
send 2000 4000
stop 0
all_there
does 0 verify
nobody_expelled
