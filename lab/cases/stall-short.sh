# A member stands still for 10 ms, 100 ms, 1 s, twice: nobody is expelled, nothing is lost.
#: disks 6 x 64M
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 2000 4000
for pause in 0.01 0.1 1 0.01 0.1 1; do
    dmsetup suspend --noflush --nolockfs m3
    send 1000 4000 &
    sleep "$pause"
    dmsetup resume m3
    wait $!
    sent=$((sent + 1000))
done
stop 0
all_there
verified 0
[ "$(grep -c '^note:' /tmp/record.out)" = 0 ] || fail "$(grep '^note:' /tmp/record.out)"
