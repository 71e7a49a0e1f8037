# what: a server takes half a second for each answer, and a program waits for it
# finding: calls.peer
# names: 7127
# look: calls --pid $PID
# needs: ip ss python3
# experts: strace -T -yy -e trace=network -p, tcpdump with times
# see: recvfrom of one connection takes 0.5 s, and the network acknowledges at once
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7127 --name thinks --mode answer --delay 0.5)
until_true 5 listens server 7127
start_at client $(program client "$server" 7127 --name waits --mode ask --nodelay)
asker=$pid
until_true 5 established client 1 'dport = :7127'

ready "$asker"
