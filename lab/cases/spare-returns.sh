# A member that fails as it returns is replaced by a spare, which counts once it has everything.
#: disks 4 x 64M
for number in 0 1 2 3; do mapped $number; done
create 1 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2
does 0 grow /dev/mapper/m3 --spare --raw
record
send 4000 4000
stop 0
dmsetup remove m1
dmsetup remove m3
record
send 8000 4000
stop 1
mapped 1
mapped 3
record
exchange 1 error
send 4000 4000
until_true 60 wirespool status "$volume"
stop 1
all_there_without 2
does 0 verify
