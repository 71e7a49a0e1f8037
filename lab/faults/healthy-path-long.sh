# what: a service on a path of 40 ms answers ten questions a second
# finding: none
# also: tcp.app_limited
# needs: ip ping ss python3
# experts: ping, ss -ti
# see: a round trip that is long and always the same
. "$(dirname "$0")/words.sh"

far_hosts 20
start_at server $(program server 7155 --name answers --mode answer)
until_true 5 listens server 7155
start_at client $(program client "$server" 7155 --name asks --mode ask --rate 10 --nodelay)
until_true 5 established client 1 'dport = :7155'
ready
