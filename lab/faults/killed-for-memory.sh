# what: a program in a control group of 30 MB is killed for want of memory, and started again
# finding: host.oom host.cgroup_memory
# names: leaks
# also: host.pressure_memory
# needs: python3
# experts: dmesg, memory.oom_control (oom_kill) of every group
# see: oom-kill lines in the log, with the group's name
. "$(dirname "$0")/words.sh"

group memory batch
limit "$group" memory.limit_in_bytes 31457280
start_in "$group" $(program work be-killed --name leaks)
kills() {
    awk '$1 == "oom_kill" { print $2 }' "$group/memory.oom_control"
}
until_true 15 grows 3 2 kills
ready
