# The power fails at any moment: each state that a disk may be left in holds what was acknowledged.
#: short
#: disks 1 x 97M log
#: replay 6 x 16M
# One disk for all members, so that one log has the order of all their writes.
members=
for number in 0 1 2 3 4 5; do
    dmsetup create "m$number" --table "0 32768 linear $(disk 0) $((number * 32768))"
    members="$members /dev/mapper/m$number"
done
dmsetup create marks --table "0 2048 linear $(disk 0) $((6 * 32768))"
create 2 $members
lab make --count "${count:-40000}" --rate 4000 | lab record "$volume" --marks /dev/mapper/marks
does 0 verify
sync
