# what: a listener with a backlog of 0 to which nobody connects
# finding: none
# needs: ip ss python3
# experts: ss -ltn, nstat
# see: that its queue is empty: 0 of 0 is not full
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7156 --name waits --mode read --backlog 0)
until_true 5 listens server 7156
ready
