# what: all local ports but 40 are reserved, and a program holds these open
# finding: tcp.ports
# names: 7166
# needs: ip ss python3
# experts: sysctl net.ipv4.ip_local_reserved_ports, ss -tan, strace -e connect
# see: EADDRNOTAVAIL though most of the range is free, and the setting that takes it away
. "$(dirname "$0")/words.sh"

two_hosts
setting client 'net.ipv4.ip_local_port_range=40000 40999' \
    net.ipv4.ip_local_reserved_ports=40000-40959
start_at server $(program server 7166 --name reads --mode read --backlog 512)
until_true 5 listens server 7166
start_at client $(program client "$server" 7166 --name hoards --mode attempt-and-keep --rate 50)
until_true 15 established client 40 'dport = :7166'
ready
