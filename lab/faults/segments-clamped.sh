# what: a firewall clamps the segment size of all connections to 88 bytes
# finding: tcp.small_segments
# names: 7174
# needs: ip nft ss python3
# experts: ss -ti (mss, advmss, pmtu), tcpdump of the SYN at both sides
# see: an mss of 76 beside a pmtu of 1500, and SYNs that differ on the two sides
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7174 --name reads --mode read)
until_true 5 listens server 7174
at server nft 'add table ip faults
    add chain ip faults in { type filter hook input priority 0; }
    add chain ip faults out { type filter hook output priority 0; }
    add rule ip faults in tcp flags syn tcp option maxseg size set 88
    add rule ip faults out tcp flags syn tcp option maxseg size set 88' ||
    skip 'nft cannot clamp segments'
start_at client $(program client "$server" 7174 --name pushes --mode push --rate 500000)
small() {
    at client ss -Htin 'dport = :7174' | grep -q ' mss:76 '
}
until_true 10 small
ready
