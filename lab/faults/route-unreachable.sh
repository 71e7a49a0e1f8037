# what: a route of the client says that a network is unreachable, and a program asks a host there
# finding: tcp.no_route
# names: 10.254.77.9
# names: asks-in-vain
# needs: ip python3
# experts: strace -e connect, ip route get ADDRESS in the right namespace
# see: EHOSTUNREACH without a packet, and a route of the type unreachable
. "$(dirname "$0")/words.sh"

two_hosts
at client ip route add unreachable 10.254.77.0/24
start_at client $(program client 10.254.77.9 7134 --name asks-in-vain --mode attempt --rate 20)
asker=$pid
until_true 10 sh -c "! ip netns exec $(named client) ip route get 10.254.77.9"
# Each attempt makes a socket and closes it: the number of system calls has no counter, but the
# program may not stand still.
until_true 10 grows 1 1 ticks "$asker"
ready
