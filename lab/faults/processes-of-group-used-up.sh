# what: a control group may have 20 processes, has them, and its program wants to start more
# finding: host.cgroup_tasks
# names: jobs-
# needs: python3
# experts: pids.events and pids.current of every group, strace -f -e clone,fork (EAGAIN)
# see: as many processes as pids.max allows, and a count of refusals that grows
. "$(dirname "$0")/words.sh"

group pids jobs
limit "$group" pids.max 20
start_in "$group" $(program work start-too-many --name starter)
refused() {
    awk '$1 == "max" { print $2 }' "$group/pids.events"
}
until_true 10 grows 1 5 refused
ready
