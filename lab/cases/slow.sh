# Two members take 300 ms for every write: no member is expelled, nothing is lost.
#: disks 6 x 64M
#: modules dm-delay
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 2000 4000
for number in 2 3; do
    exchange $number delay "$(disk $number)" 0 0 "$(disk $number)" 0 300
done
send 10000 2000
stop 0
all_there
does 0 verify
nobody_expelled
