# One of three members answers with errors when recording begins: it goes on without.
#: disks 3 x 64M
for number in 0 1 2; do mapped $number; done
create 1 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2
record
send 4000 4000
stop 0
exchange 1 error
record
send 4000 4000
stop 1
expelled 1
all_there
# Named itself it says who it is, and that another one would do.
volume=/dev/mapper/m1
does 3 record --interface wire1
grep -q '^wirespool: /dev/mapper/m1: .*name another member' /tmp/verb.out ||
    fail "$(tail -n 1 /tmp/verb.out)"
# A second one is one too many, and both are named.
volume=/dev/mapper/m0
exchange 2 error
does 3 record --interface wire1
names='missing: 2; member 1 (/dev/mapper/m1): cannot read .*; member 2 (/dev/mapper/m2): cannot'
grep -q "$names" /tmp/verb.out || fail "$(tail -n 1 /tmp/verb.out)"
