# A place of one disk cannot be written, one of another cannot be read: nothing is lost.
#: disks 6 x 64M
#: fault disk2 write 6M
#: fault disk4 read 4M
# From the first byte on, so that the ring comes to both places.
create_options="--zones 1"
create 2 "$(disk 0)" "$(disk 1)" "$(disk 2)" "$(disk 3)" "$(disk 4)" "$(disk 5)"
record
send 24000 4000
stop 1
expelled 2
all_there
does 1 verify
