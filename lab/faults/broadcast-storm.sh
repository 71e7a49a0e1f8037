# what: two bridges are joined twice, without spanning tree, and broadcasts go round for ever
# finding: host.softirq
# also: host.busy host.pressure_cpu host.softnet net.interface_errors net.neighbour
# needs: ip taskset python3
# experts: mpstat -P ALL (%soft), top (ksoftirqd), /proc/softirqs, tcpdump
# see: one processor in softirq all the time, and the same frame again and again
. "$(dirname "$0")/words.sh"

processors 2
namespace one two
for place in one two; do
    at "$place" ip link add bridge type bridge || skip 'the kernel has no bridge'
    at "$place" ip link set bridge up
done
joined one left "$subnet.1/32" two left "$subnet.2/32"
joined one right "$subnet.3/32" two right "$subnet.4/32"
for place in one two; do
    for port in left right; do
        at "$place" ip link set "$(face $port)" master bridge
    done
done
# What comes from processor 1 is received on processor 1, round after round.
start_at one taskset -c 1 $(program announce bridge "$subnet.66")
soft() {
    awk '$1 == "cpu1" { print $8 }' /proc/stat
}
until_true 15 grows 1 40 soft
ready
