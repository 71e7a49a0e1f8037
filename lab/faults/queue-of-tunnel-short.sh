# what: a tunnel's transmit queue is two packets long, and bursts do not fit
# finding: net.queue_drops net.interface_errors
# names: lan-
# also: tcp.retransmissions
# needs: ip ping python3
# experts: ip -s link (TX dropped, qlen), tc -s qdisc
# see: dropped that grows at each burst, and a qlen of 2
. "$(dirname "$0")/words.sh"

far_hosts 5
at client ip link set "$(face lan)" txqueuelen 2
start_at client $(program datagrams send "$server" 7125 --name bursts --rate 400 --burst 40)
dropped() {
    at client cat "/sys/class/net/$(face lan)/statistics/tx_dropped"
}
until_true 10 grows 1 50 dropped
ready
