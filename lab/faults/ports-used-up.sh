# what: a program connects anew for each question until all 200 local ports wait in TIME_WAIT
# finding: tcp.ports
# names: 7118
# needs: ip ss python3
# experts: ss -tan state time-wait | wc -l, sysctl net.ipv4.ip_local_port_range, strace -e connect
# see: as many sockets in TIME-WAIT to one destination as there are ports, and EADDRNOTAVAIL
. "$(dirname "$0")/words.sh"

two_hosts
setting client 'net.ipv4.ip_local_port_range=40000 40199' net.ipv4.tcp_tw_reuse=0
start_at server $(program server 7118 --name answers --mode read)
until_true 5 listens server 7118
start_at client $(program client "$server" 7118 --name connects-anew --mode attempt --rate 100)
used_up() {
    [ "$(at client ss -Htan state time-wait 'dport = :7118' | wc -l)" -ge 195 ]
}
until_true 20 used_up
ready
