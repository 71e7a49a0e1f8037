# what: fifty connections are open and idle
# finding: none
# needs: ip ss python3
# experts: ss -ti, nstat
# see: that no queue is filled and no counter of trouble moves
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7151 --name serves --mode answer)
until_true 5 listens server 7151
start_at client $(program client "$server" 7151 --name asks --mode idle --connections 50)
until_true 10 established server 50 'sport = :7151'
ready
