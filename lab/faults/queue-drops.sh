# what: a shaper of 20 Mbit/s has a queue of 8 KB, and drops what comes in bursts
# finding: net.queue_drops
# names: lan-
# also: tcp.retransmissions tcp.small_window
# needs: ip tc ethtool ss python3
# experts: tc -s qdisc
# see: the count of dropped at the queue of one interface, in one namespace
. "$(dirname "$0")/words.sh"

two_hosts
whole_packets client lan
at client tc qdisc add dev "$(face lan)" root tbf rate 20mbit burst 4kb limit 8kb ||
    skip 'the kernel has no tbf'
start_at server $(program server 7117 --name backup --mode read)
until_true 5 listens server 7117
start_at client $(program client "$server" 7117 --name uploads --mode push --connections 4)
dropped() {
    at client tc -s qdisc show dev "$(face lan)" | sed -n 's/.*dropped \([0-9]*\).*/\1/p'
}
until_true 10 grows 1 20 dropped
ready
