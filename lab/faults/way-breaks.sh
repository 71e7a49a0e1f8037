# what: a firewall begins to drop all packets of connections that worked
# finding: tcp.stalled
# names: asks
# also: tcp.retransmissions
# needs: ip nft ss python3
# experts: ss -ti (backoff, lastack), tcpdump at both sides
# see: a backoff that grows, lastack as old as the breach, and nothing that arrives
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7162 --name answers --mode answer)
until_true 5 listens server 7162
start_at client $(program client "$server" 7162 --name asks --mode ask --connections 4 --rate 20)
until_true 5 established client 4 'dport = :7162'
filter server tcp dport 7162 drop
stuck() {
    [ "$(at client ss -Htin 'dport = :7162' | grep -c 'backoff:')" -ge 4 ]
}
until_true 15 stuck
ready
