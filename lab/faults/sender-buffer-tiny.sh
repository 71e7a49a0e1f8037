# what: a program has set a send buffer of 4 KiB, on a path of 20 ms
# finding: tcp.send_buffer
# names: 7108
# needs: ip ping ss python3
# experts: ss -tmi (sndbuf_limited, skmem), strace of setsockopt
# see: sndbuf_limited near 100 % of busy, tb far below what the path holds
. "$(dirname "$0")/words.sh"

far_hosts 10
# The kernel counts this limit while packets wait for their pace, and bbr paces them.
at client sysctl -q -w net.ipv4.tcp_congestion_control=bbr 2>/dev/null
# The kernel fills a packet that it has begun, whatever the limit: so packets are small.
at client ip link set "$(face lan)" gso_max_segs 2 gso_max_size 4096 ||
    skip 'the kernel does not limit the size of packets'
start_at server $(program server 7108 --mode read)
until_true 5 listens server 7108
start_at client $(program client "$server" 7108 --name small-buffer --mode push --send-buffer 4096)
until_true 15 half_limited client sndbuf 'dport = :7108'
ready
