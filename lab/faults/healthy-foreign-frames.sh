# what: a quiet link carries ten frames a second of a protocol that nobody takes
# finding: none
# needs: ip python3
# experts: ip -s link (RX dropped), tcpdump -e, dropwatch
# see: that what is dropped is LLDP
. "$(dirname "$0")/words.sh"

two_hosts
start_at client $(program frames "$(face lan)")
dropped() {
    at server cat "/sys/class/net/$(face lan)/statistics/rx_dropped"
}
until_true 10 grows 1 5 dropped
ready
