# A member stands still for 10 ms, 100 ms, 1 s, twice: no member is expelled, nothing is lost.
#: disks 6 x 64M
for number in 0 1 2 3 4 5; do mapped $number; done
create 2 /dev/mapper/m0 /dev/mapper/m1 /dev/mapper/m2 /dev/mapper/m3 /dev/mapper/m4 /dev/mapper/m5
record
send 2000 4000
longest=0
for pause in 0.01 0.1 1 0.01 0.1 1; do
    lab send wire0 --from "$sent" --count 1000 --rate 4000 &
    begin=$(now)
    dmsetup suspend --noflush --nolockfs m3
    sleep "$pause"
    dmsetup resume m3
    length=$(($(now) - begin))
    [ "$length" -le "$longest" ] || longest=$length
    wait $!
    sent=$((sent + 1000))
done
stop 0 1
all_there
does 0 verify
say "longest pause: ${longest}0 ms"
# On a machine that is too busy a pause may last longer than it should.
[ "$longest" -ge 180 ] || nobody_expelled
