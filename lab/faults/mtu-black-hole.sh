# what: a router's link has an MTU of 1400 and its ICMP messages about it are filtered
# finding: tcp.mtu_black_hole
# names: 7114
# also: tcp.retransmissions
# needs: ip nft ss nstat ethtool ping python3
# experts: ss -ti (unacked, backoff, mss), ping -M do -s 1472, tracepath
# see: small answers pass, full segments are retransmitted for ever, and no ICMP comes
. "$(dirname "$0")/words.sh"

with_router
whole_packets client lan
at router ip link set "$(face far)" mtu 1400
at router nft 'add table ip faults; add chain ip faults out { type filter hook output priority 0; };
    add rule ip faults out icmp type destination-unreachable drop' || skip 'nft cannot drop ICMP'
start_at server $(program server 7114 --name storage --mode answer)
until_true 5 listens server 7114
start_at client $(program client "$server" 7114 --name uploads --mode ask-then-push --connections 3)
start_at client $(program client "$server" 7114 --name asks --mode ask --rate 5)
stuck() {
    [ "$(at client ss -Htin 'dport = :7114' | grep -c 'backoff:')" -ge 3 ]
}
until_true 15 stuck
at client ping -q -c 1 -W 1 -s 1000 "$server" >/dev/null || fail 'small packets do not pass either'
! at client ping -q -c 1 -W 1 -M 'do' -s 1472 "$server" >/dev/null || fail 'full packets pass'
ready
