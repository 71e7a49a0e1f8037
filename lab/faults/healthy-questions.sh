# what: a service answers 200 questions a second at once
# finding: none
# needs: ip ss nstat python3
# experts: ss -ti, tcpdump with times
# see: round trips of less than a millisecond, and nothing that waits
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7153 --name answers --mode answer)
until_true 5 listens server 7153
start_at client $(program client "$server" 7153 --name asks --mode ask --connections 4 \
    --rate 50 --nodelay)
until_true 10 grows 1 150 counter client TcpOutSegs
ready
