# what: two hosts of a network have the same address and both announce it
# finding: net.neighbour
# names: .7
# also: tcp.no_answer tcp.retransmissions
# needs: ip python3
# experts: ip monitor neigh, arping -D, tcpdump arp
# see: that the link-level address of one neighbour changes back and forth
. "$(dirname "$0")/words.sh"

namespace switch client first second
at switch ip link add bridge type bridge || skip 'the kernel has no bridge'
at switch ip link set bridge up
joined client lan "$subnet.1/24" switch port-1 "$subnet.101/32"
joined first lan "$subnet.7/24" switch port-2 "$subnet.102/32"
joined second lan "$subnet.7/24" switch port-3 "$subnet.103/32"
for port in port-1 port-2 port-3; do
    at switch ip link set "$(face $port)" master bridge
done
start_at client $(program datagrams send "$subnet.7" 7119 --name reports --rate 20)
for host in first second; do
    start_at "$host" $(program announce "$(face lan)" "$subnet.7")
done
address() {
    at client ip neigh show "$subnet.7" | sed -n 's/.*lladdr \([^ ]*\).*/\1/p'
}
changes() {
    before=$(address)
    for look in 1 2 3 4 5 6 7 8; do
        sleep 0.2
        [ "$(address)" = "$before" ] || return 0
    done
    return 1
}
until_true 10 changes
ready
