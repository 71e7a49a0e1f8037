# what: a firewall lets connections open and drops every packet with data
# finding: tcp.stalled
# names: pushes
# also: tcp.retransmissions
# needs: ip nft ss python3
# experts: ss -ti (backoff, bytes_acked), tcpdump at both sides, nft list ruleset with counters
# see: that nothing was ever acknowledged, large or small, and that what leaves does not arrive
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7161 --name reads --mode read)
until_true 5 listens server 7161
filter server tcp dport 7161 'tcp flags & syn == 0' meta length '> 60' drop
start_at client $(program client "$server" 7161 --name pushes --mode push --connections 2)
stuck() {
    [ "$(at client ss -Htin 'dport = :7161' | grep -c 'backoff:')" -ge 2 ]
}
until_true 15 stuck
ready
