# Three of six members fail: recording ends; once they are back, all that was acknowledged is there.
#: disks 6 x 64M
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 8000 2000
for number in 1 2 3; do exchange $number error; done
send 4000 4000
ended 3
for number in 1 2 3; do healthy $number; done
first_there 4000
does 0 verify
# It goes on with all of them.
record
stop 0
first_there 4000
