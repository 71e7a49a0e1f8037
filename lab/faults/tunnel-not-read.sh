# what: a tunnel's program hangs and no longer takes packets from its device
# finding: net.interface_errors
# names: vpn-
# also: net.queue_drops net.neighbour
# needs: ip python3
# experts: ip -s link (TX dropped), strace -p of the tunnel's program
# see: dropped of one interface that grows with each packet
. "$(dirname "$0")/words.sh"

[ -c /dev/net/tun ] || skip 'there is no /dev/net/tun'
namespace client
at client ip tuntap add dev "$(face vpn)" mode tap || skip 'the kernel has no tap devices'
start_at client $(program hang_tunnel "$(face vpn)")
addressed client vpn "$subnet.1/24"
at client ip link set "$(face vpn)" txqueuelen 100
at client ip neigh add "$subnet.2" lladdr 02:00:00:00:00:02 dev "$(face vpn)"
start_at client $(program datagrams send "$subnet.2" 7124 --name reports --rate 200)
dropped() {
    at client cat "/sys/class/net/$(face vpn)/statistics/tx_dropped"
}
until_true 10 grows 1 100 dropped
ready
