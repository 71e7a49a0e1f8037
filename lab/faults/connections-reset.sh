# what: a server resets each connection after the first question
# finding: tcp.reset
# names: 7165
# names: crashes
# needs: ip ss nstat python3
# experts: nstat TcpEstabResets TcpExtTCPAbortOnData, tcpdump for RST, strace of the client
# see: as many resets of established connections as there are questions, and who sends them
. "$(dirname "$0")/words.sh"

two_hosts
start_at server $(program server 7165 --name crashes --mode reset)
until_true 5 listens server 7165
start_at client $(program client "$server" 7165 --name asks --mode ask-anew --rate 20)
until_true 10 grows 1 5 counter client TcpEstabResets
ready
