# what: connections from one of two local addresses are shaped to a quarter of the others' rate
# finding: tcp.two_speeds
# names: 7109
# also: tcp.bufferbloat net.queue_drops tcp.retransmissions tcp.small_window
# needs: ip tc ss python3
# experts: ss -ti of all connections, a histogram by hand, tc -s class
# see: that the slow half has one local address in common
. "$(dirname "$0")/words.sh"

two_hosts
at client ip address add "$subnet.3/24" dev "$(face lan)"
tc_client() {
    at client tc "$@" || skip "tc cannot do: $*"
}
lan=$(face lan)
tc_client qdisc add dev "$lan" root handle 1: htb default 10
tc_client class add dev "$lan" parent 1: classid 1:10 htb rate 80mbit
tc_client class add dev "$lan" parent 1: classid 1:20 htb rate 20mbit
tc_client filter add dev "$lan" parent 1: protocol ip u32 match ip src "$subnet.3/32" flowid 1:20
start_at server $(program server 7109 --name storage --mode read)
until_true 5 listens server 7109
for address in 1 3; do
    start_at client $(program client "$server" 7109 --name "sends-$address" --mode push \
        --connections 6 --from "$subnet.$address")
done
# Bytes sent by the class.
sent() {
    at client tc -s class show dev "$lan" |
        awk '/class htb 1:20/ { ours = 1 } ours && /Sent/ { print $2; exit }'
}
until_true 10 established client 12 'dport = :7109'
until_true 10 grows 1 1500000 sent
ready
