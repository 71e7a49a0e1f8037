# what: two programs send to one port, each at a rate of its own
# finding: none
# needs: ip ss python3
# experts: ss -ti (app_limited, busy)
# see: app_limited at all of them, and hardly any time with something to send
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7163 --name archive --mode read)
until_true 5 listens server 7163
start_at client $(program client "$server" 7163 --name camera --mode push --connections 6 \
    --rate 200000)
start_at client $(program client "$server" 7163 --name backup --mode push --connections 6 \
    --rate 2000000)
until_true 10 established client 12 'dport = :7163'
ready
