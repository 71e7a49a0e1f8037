# what: answers come back by another interface, and strict rp_filter drops them
# finding: net.reverse_path
# names: client
# also: tcp.no_answer net.neighbour
# needs: ip ss nstat python3
# experts: nstat TcpExtIPReversePathFilter, log_martians, tcpdump, ip route get at both sides
# see: that answers arrive and are dropped, and by which interface they come
. "$(dirname "$0")/words.sh"

two_hosts
joined client back 192.168.77.1/24 server back 192.168.77.2/24
at server ip address add 10.99.99.9/32 dev lo
at client ip route add 10.99.99.9 via "$server"
at server ip route add "$client/32" via 192.168.77.1
# Questions for the link-level address are filtered as well.
at server ip neigh replace 192.168.77.1 dev "$(face back)" \
    lladdr "$(at client cat "/sys/class/net/$(face back)/address")"
setting client net.ipv4.conf.all.rp_filter=1
start_at server $(program server 7167 --name answers --mode answer)
until_true 5 listens server 7167
start_at client $(program client 10.99.99.9 7167 --name asks --mode attempt --connections 3 \
    --rate 2 --patience 3)
until_true 10 grows 1 2 counter client TcpExtIPReversePathFilter
ready
