# One of six members answers every request with an error while packets are recorded: none is lost.
#: disks 6 x 64M
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 5000 4000
exchange 2 error
send 10000 4000
stop 1
expelled 2
all_there
does 0 verify
