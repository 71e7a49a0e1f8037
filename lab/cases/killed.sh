# The recorder is killed and started again, ten times: each goes on where the last one stopped.
#: disks 6 x 64M
create 2 "$(disk 0)" "$(disk 1)" "$(disk 2)" "$(disk 3)" "$(disk 4)" "$(disk 5)"
for round in 0 1 2 3 4 5 6 7 8 9; do
    record
    send 1000 4000
    # A column is cut after a second, and flushed at once.
    sleep 3
    kill -KILL "$recorder"
    wait "$recorder" || true
done
record
stop 0
all_there
does 0 verify
