# Two members drop writes that they report as done: extracts are whole, scrub repairs.
#: short
#: disks 6 x 64M
#: modules dm-flakey
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 4000 4000
for number in 2 5; do
    exchange $number flakey "$(disk $number)" 0 0 3600 1 drop_writes
done
send 4000 4000
healthy 2
healthy 5
send 4000 4000
stop 0
all_there
does 1 verify
does 0 scrub
does 0 verify
all_there
