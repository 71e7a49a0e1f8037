# what: a server waits for questions, of which ten a second come
# finding: none
# look: calls --pid $PID
# needs: ip ss python3
# experts: strace -c -w -f
# see: that it waits to be asked, and answers at once
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7157 --name answers --mode answer)
server_process=$pid
until_true 5 listens server 7157
start_at client $(program client "$server" 7157 --name asks --mode ask --rate 10 --nodelay)
until_true 5 established server 1 'sport = :7157'
ready "$server_process"
