# A place of one disk cannot be written, one of another cannot be read: nothing is lost.
#: disks 6 x 64M
#: fault disk2 write 9M
#: fault disk4 read 5M
create 2 "$(disk 0)" "$(disk 1)" "$(disk 2)" "$(disk 3)" "$(disk 4)" "$(disk 5)"
record
send 24000 4000
stop 0
expelled 2
all_there
verified 1
