# what: a program connects to a host of its own network that is gone
# finding: net.neighbour tcp.no_answer
# names: .99
# needs: ip ss python3
# experts: ip neigh, ss -tn state syn-sent, tcpdump arp
# see: a neighbour entry INCOMPLETE or FAILED for the address
. "$(dirname "$0")/words.sh"

two_hosts
start_at client $(program client "$subnet.99" 7111 --name asks-the-gone --mode attempt \
    --connections 3)
gone() {
    at client ip neigh show "$subnet.99" | grep -Eq 'FAILED|INCOMPLETE'
}
until_true 10 gone
ready
