# what: the route of a client has a window of 4 KiB, and every answer is limited by it
# finding: tcp.receiver_limited
# names: 7128
# needs: ip ping ss python3
# experts: ss -ti on the server (rwnd_limited), ip route show (window)
# see: rwnd_limited near 100 % of busy, and the word window in a route of the other side
. "$(dirname "$0")/words.sh"

far_hosts 10
at client ip route add "$subnet.2/32" dev "$(face lan)" window 4096 || skip 'routes have no window'
start_at server $(program server 7128 --name streams --mode send)
until_true 5 listens server 7128
start_at client $(program client "$server" 7128 --name plays --mode pull --connections 2)
until_true 15 half_limited server rwnd 'sport = :7128'
ready
