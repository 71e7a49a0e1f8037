# One start with a clock five years ahead, of a volume that erases after a week, costs nothing.
#: disks 3 x 64M
create_options='--max-age 7d'
record_options=--erase
create 1 "$(disk 0)" "$(disk 1)" "$(disk 2)"
record
send 4000 4000
stop 0
right=$(date +%s)
date -s "@$((right + 5 * 365 * 86400))" >/dev/null
record
stop 1
grep -q 'clock' /tmp/record.err || fail 'it does not say that the clock cannot be right'
date -s "@$((right + 60))" >/dev/null
record
send 4000 4000
# Longer than it takes to look for what is too old.
sleep 5
stop 0 1
all_there
does 0 verify
record_options='--erase --clock-is-right'
record
stop 0
all_there
