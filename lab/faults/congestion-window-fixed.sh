# what: a route to one of three clients has a congestion window of two segments fixed
# finding: tcp.small_window tcp.two_speeds
# names: 7128
# needs: ip ping ss python3
# experts: ss -ti of all connections, ip route show (cwnd)
# see: the connections to one address with a cwnd of 2, and a route that says so
. "$(dirname "$0")/words.sh"

far_hosts 10
for address in 11 12 13; do
    at client ip address add "$subnet.$address/24" dev "$(face lan)"
done
at server ip route add "$subnet.13/32" dev "$(face lan)" cwnd lock 2 initcwnd 2 || skip 'routes have no cwnd'
start_at server $(program server 7128 --name streams --mode send --rate 120000)
until_true 5 listens server 7128
for address in 11 12 13; do
    start_at client $(program client "$server" 7128 --name "plays-$address" --mode pull --connections 2 \
        --from "$subnet.$address")
done
held() {
    [ "$(at server ss -Htin "dst = $subnet.13" | grep -c 'cwnd:[1-4] ')" = 2 ] &&
        [ "$(at server ss -Htin "dst = $subnet.11" | grep -c 'cwnd:[1-9][0-9]')" = 2 ]
}
until_true 10 held
ready
