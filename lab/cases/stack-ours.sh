# Four members with two of parity: a disk rots, all packets come out, scrub repairs; then two more.
#: short
#: disks 4 x 64M
create 2 "$(disk 0)" "$(disk 1)" "$(disk 2)" "$(disk 3)"
before=$(written)
record
send 20000 4000
stop 0
all_there
# A record of libpcap has 16 bytes before each packet, its file 24.
bytes=$(($(wc -c </tmp/extract.pcap) - 24 - 16 * sent))
amplified 'a volume of 2 + 2' "$bytes" "$before"
rot 1 32
all_there
does 1 verify
does 0 scrub
does 0 verify
rot 2 32
rot 3 32
all_there
does 0 scrub
does 0 verify
all_there
