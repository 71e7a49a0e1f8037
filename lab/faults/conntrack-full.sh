# what: the connection table of a firewall is full, and new connections are dropped
# finding: net.conntrack
# also: tcp.no_answer net.interface_errors
# needs: ip nft conntrack python3
# experts: sysctl net.netfilter.nf_conntrack_count nf_conntrack_max, conntrack -S, dmesg
# see: a count equal to the maximum, and drop in conntrack -S that grows
. "$(dirname "$0")/words.sh"

# Kernels have one maximum for all namespaces; the machine's own table must not need it.
own=$(cat /proc/sys/net/netfilter/nf_conntrack_count 2>/dev/null) ||
    skip 'the kernel tracks no connections'
[ "$own" -lt 100 ] || skip "the machine's own table has $own entries"
two_hosts
filter server ct state new accept
attribute /proc/sys/net/netfilter/nf_conntrack_max 500
start_at client $(program datagrams send "$server" 9 --name scans --rate 400 --ports 1000)
dropped() {
    at server conntrack -S 2>/dev/null | sed -n 's/.* drop=\([0-9]*\).*/\1/p' |
        awk '{ sum += $1 } END { print sum + 0 }'
}
until_true 15 grows 1 50 dropped
ready
