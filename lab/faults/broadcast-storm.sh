# what: two bridges are joined twice, without spanning tree, and broadcasts go round for ever
# finding: host.softirq
# also: host.busy host.pressure_cpu host.softnet net.interface_errors net.neighbour
# needs: ip python3
# experts: mpstat -P ALL (%soft), top (ksoftirqd), /proc/softirqs, tcpdump
# see: one processor in softirq all the time, and the same frame again and again
. "$(dirname "$0")/words.sh"

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
at one ip address add "$subnet.65/26" dev bridge
# One question for an address that nobody has: it is a broadcast, and it goes round.
start_at one $(program datagrams send "$subnet.66" 9 --name asks --rate 2)
soft() {
    awk '$1 == "cpu" { print $8 }' /proc/stat
}
until_true 15 grows 1 60 soft
ready
