# A member fails while a spare waits: the recorder puts it in, and two others may fail then.
#: disks 7 x 64M
for number in 0 1 2 3 4 5 6; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
does 0 grow /dev/mapper/m6 --spare --raw
record
send 4000 4000
exchange 4 error
send 8000 4000
until_true 60 wirespool status "$volume"
stop 1
does 0 scrub
all_there_without 1 2
does 0 verify
