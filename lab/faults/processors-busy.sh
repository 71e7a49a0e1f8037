# what: six processes compute on two processors
# finding: host.busy host.pressure_cpu
# names: computes
# also: calls.processor host.processes
# needs: python3
# experts: top, vmstat (r), /proc/pressure/cpu
# see: more runnable processes than processors, and whose they are
. "$(dirname "$0")/words.sh"

start $(program work compute --name computes --count 6)
runnable() {
    [ "$(awk '$1 == "procs_running" { print $2 }' /proc/stat)" -ge 6 ]
}
until_true 10 runnable
ready
