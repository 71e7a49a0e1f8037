# what: a program connects 40 times a second to a port at which nothing listens
# finding: tcp.refused
# names: 7113
# needs: ip nstat python3
# experts: nstat TcpAttemptFails TcpOutRsts, tcpdump 'tcp[tcpflags] & tcp-rst != 0', strace -e
#   connect
# see: AttemptFails that grows, and the address in the packets
. "$(dirname "$0")/words.sh"

two_hosts
start_at client $(program client "$server" 7113 --name asks-nobody --mode attempt --rate 40)
until_true 10 grows 1 20 counter client TcpAttemptFails
ready
