# What situations are written in; sourced by each. Whatever a word makes, the end of the situation
# takes away again, in reverse order.

set -u
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
programs=$here/programs
python=/usr/bin/python3
[ -x "$python" ] || python=python3
FAULT_ID=${FAULT_ID:-$(basename "$0" .sh)-$$}
number=$(printf '%s' "$FAULT_ID" | cksum | cut -d ' ' -f 1)
short=$(printf '%06x' $((number % 16777216)))
# Addresses of this situation: $subnet.1 and so on, all of one /24.
subnet=10.$((number / 251 % 120 + 100)).$((number % 251))
work=/var/tmp/wf-$short
undo=
processes=
was_ready=no
is_stopped=no

say() {
    echo "$(basename "$0" .sh): $*" >&2
}

# The cause could not be planted.
fail() {
    say "$*"
    exit 1
}

# This machine cannot host the situation.
skip() {
    echo "skip: $*"
    exit 0
}

# later COMMAND: done at the end; the last one first. Right behind what it takes away: a signal is
# heeded here, and where something waits, so that nothing is made without its end being known.
later() {
    undo="$1
$undo"
    heed
}

heed() {
    [ "$is_stopped" = no ] || exit 1
}

# end PID: a process of `launch` with its group, which it may not have yet.
end() {
    kill -s KILL -- "-$1" 2>/dev/null || kill -s KILL "$1" 2>/dev/null
}

finish() {
    status=$?
    trap - EXIT
    trap '' INT TERM HUP
    for process in $processes; do
        if [ "$was_ready" = yes ] && ! kill -0 "$process" 2>/dev/null; then
            say "the program $process ended before the situation did"
            status=1
        fi
        end "$process"
    done
    while [ -n "$undo" ]; do
        command=$(printf '%s' "$undo" | head -n 1)
        undo=$(printf '%s' "$undo" | tail -n +2)
        eval "$command" || { say "left behind, as this failed: $command" && status=1; }
    done
    wait
    exit "$status"
}
trap finish EXIT
trap 'is_stopped=yes' INT TERM HUP

# ready [PID]: the cause is there. Keeps it going until stdin closes or a signal comes.
ready() {
    for process in $processes; do
        kill -0 "$process" 2>/dev/null || fail "the program $process ended too early"
    done
    was_ready=yes
    trap 'exit 0' INT TERM HUP
    heed
    echo "ready${1:+ $1}"
    exec 3<&0
    setpriv --pdeathsig KILL cat <&3 >/dev/null &
    listener=$!
    later "kill $listener 2>/dev/null || :"
    wait "$listener"
    exit 0
}

# until_true SECONDS COMMAND...: waits until the command succeeds, or fails.
until_true() {
    seconds=$1
    deadline=$(($(date +%s) + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        heed
        [ "$(date +%s)" -lt "$deadline" ] || fail "after $seconds s still not so: $*"
        sleep 0.1
    done
}

# start COMMAND...: a program in the background, with its own process group; its process is in $pid.
# It dies with this script, however that ends.
start() {
    launch "$@"
    processes="$processes $pid"
    heed
}

launch() {
    setsid setpriv --pdeathsig KILL "$@" </dev/null >&2 &
    pid=$!
}

# start_in GROUP COMMAND...: the same in a control group (its folder; several with commas).
start_in() {
    groups=$1
    shift
    start sh -c 'for group in $(echo "$0" | tr , " "); do echo $$ >"$group/cgroup.procs" || exit 1
        done; exec "$@"' "$groups" "$@"
}

# start_at NAMESPACE COMMAND...: the same in a network namespace.
start_at() {
    place=$1
    shift
    start ip netns exec "$(named "$place")" "$@"
}

# program NAME ARGUMENTS...: the command line of one of our programs, for `start $(program ...)`.
program() {
    name=$1
    shift
    echo "$python $programs/$name.py $*"
}

# ---- networks

# Namespaces are called by a word here, and by the situation's number on the machine.
named() {
    echo "wf-$short-$1"
}

at() {
    place=$1
    shift
    ip netns exec "$(named "$place")" "$@"
}

# namespace WORD...: network namespaces.
namespace() {
    for place in "$@"; do
        ip netns add "$(named "$place")" || fail "cannot make a network namespace"
        later "ip netns del $(named "$place")"
        at "$place" ip link set lo up
        at "$place" sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 2>/dev/null
    done
}

# An interface's name: a word and the situation's number.
face() {
    echo "$1-$short"
}

# joined A WORD ADDRESS/BITS B WORD ADDRESS/BITS: two namespaces, joined by two veth interfaces.
joined() {
    ip link add "$(face "$2")" netns "$(named "$1")" type veth \
        peer name "$(face "$5")" netns "$(named "$4")" || fail "cannot join $1 and $4"
    addressed "$1" "$2" "$3"
    addressed "$4" "$5" "$6"
}

addressed() {
    at "$1" ip address add "$3" dev "$(face "$2")"
    at "$1" ip link set "$(face "$2")" up
}

# client and server, joined: lan- in each; $client and $server are their addresses.
two_hosts() {
    namespace client server
    client=$subnet.1
    server=$subnet.2
    joined client lan "$client/24" server lan "$server/24"
}

# far_hosts MILLISECONDS: the same over a path that takes so long, each way. Slow: 1 MB/s at most.
far_hosts() {
    [ -c /dev/net/tun ] || skip "there is no /dev/net/tun"
    namespace client server
    client=$subnet.1
    server=$subnet.2
    for place in client server; do
        at "$place" ip tuntap add dev "$(face lan)" mode tap || skip "the kernel has no tap devices"
    done
    start $(program path "$(named client)" "$(named server)" "$(face lan)" "$1")
    path=$pid
    addressed client lan "$client/24"
    addressed server lan "$server/24"
    until_true 10 at client sh -c "</dev/null ping -c 1 -W 1 $server"
}

# with_router: client, router and server in a row; $client and $server are the ends.
with_router() {
    namespace client router server
    client=$subnet.2
    server=$subnet.130
    joined client lan "$client/25" router near "$subnet.1/25"
    joined server lan "$server/25" router far "$subnet.129/25"
    at router sysctl -q -w net.ipv4.ip_forward=1
    at client ip route add default via "$subnet.1"
    at server ip route add default via "$subnet.129"
}

# setting WORD NAME=VALUE...: sysctls of a namespace.
setting() {
    place=$1
    shift
    at "$place" sysctl -q -w "$@" || skip "the kernel does not set $* in a namespace"
}

# unpaced WORD: congestion control that fills queues, as bbr does not.
unpaced() {
    at "$1" sysctl -q -w net.ipv4.tcp_congestion_control=cubic 2>/dev/null ||
        setting "$1" net.ipv4.tcp_congestion_control=reno
}

# whole_packets WORD INTERFACE: no segmentation by the card: what is sent are packets of the wire.
whole_packets() {
    at "$1" ethtool -K "$(face "$2")" tso off gso off gro off >/dev/null 2>&1
}

# resolver ADDRESS...: the DNS servers of the namespace `client`.
resolver() {
    mkdir -p "/etc/netns/$(named client)"
    # The folder of all namespaces stays if somebody else has something in it.
    later 'rmdir /etc/netns 2>/dev/null || :'
    later "rm -r /etc/netns/$(named client)"
    for address in "$@"; do
        echo "nameserver $address"
    done >"/etc/netns/$(named client)/resolv.conf"
}

# filter WORD RULE...: an nft rule for what comes in (hook input) of a namespace.
filter() {
    place=$1
    shift
    at "$place" nft "add table ip faults
        add chain ip faults in { type filter hook input priority 0; }
        add rule ip faults in $*" || skip "nft cannot do: $*"
}

# counter WORD NAME: a counter of nstat, since the namespace began.
counter() {
    at "$1" nstat -asz "$2" | awk -v name="$2" '$1 == name { print $2 }'
}

# grows SECONDS LEAST COMMAND...: the number that the command prints grows by so much meanwhile.
grows() {
    interval=$1
    least=$2
    shift 2
    number_before=$("$@")
    sleep "$interval"
    [ $(($("$@") - number_before)) -ge "$least" ]
}

# listens WORD PORT: a program listens there.
listens() {
    at "$1" ss -Hltn "sport = :$2" | grep -q LISTEN
}

# established WORD COUNT FILTER...: at least so many connections.
established() {
    place=$1
    count=$2
    shift 2
    [ "$(at "$place" ss -Htn state established "$@" | wc -l)" -ge "$count" ]
}

# half_limited WORD LIMIT FILTER: a connection that is for half of its busy time at a limit of ss
# (rwnd, sndbuf).
half_limited() {
    at "$1" ss -Htin "$3" | sed -n "s/.*$2_limited:[0-9]*ms(\([0-9]*\)[.0-9]*%).*/\1/p" |
        awk '$1 >= 50 { found = 1 } END { exit !found }'
}

# ---- disks

# The situation's folder. Its file system is the machine's own: at most 1 GB.
folder() {
    if [ ! -d "$work" ]; then
        mkdir -p "$work" || fail "cannot make $work"
        later "rm -rf --one-file-system $work"
    fi
}

# disk MEGABYTES [LOSETUP OPTIONS]: a loop device over a file; $loop (/dev/loop3), $device (loop3).
disk() {
    folder
    megabytes=$1
    shift
    truncate -s "${megabytes}M" "$work/disk"
    looped "$work/disk" "$@"
}

looped() {
    loop_file=$1
    shift
    for attempt in 1 2 3 4 5; do
        loop=$(losetup --find --show "$@" "$loop_file" 2>/dev/null) && break
        loop=
        sleep 0.2
    done
    [ -n "$loop" ] || skip "there is no free loop device"
    device=${loop#/dev/}
    later "detach $loop"
}

# Others (udev, a look at all disks) may have it open for a moment.
detach() {
    losetup -d "$1" && for attempt in 1 2 3 4 5 6 7 8 9 10; do
        losetup "$1" >/dev/null 2>&1 || return 0
        sleep 0.3
    done
}

# slow_disk MEGABYTES MILLISECONDS [OPTIONS]: a loop device whose file is served by a program that
# takes so long for each request, one after the other (programs/slow_disk.py says what else).
slow_disk() {
    [ -c /dev/fuse ] || skip "there is no /dev/fuse"
    folder
    mkdir -p "$work/slow"
    megabytes=$1
    milliseconds=$2
    shift 2
    # Not one of $processes: it ends after what lies on it.
    launch $(program slow_disk "$work/slow" "$megabytes" "$milliseconds" "$@")
    slow_server=$pid
    later "end_slow_disk $slow_server"
    until_true 10 test -f "$work/slow/disk"
    looped "$work/slow/disk" --direct-io=on
}

end_slow_disk() {
    end "$1"
    wait "$1" 2>/dev/null
    ! grep -q " $work/slow " /proc/mounts || umount "$work/slow" 2>/dev/null ||
        umount -l "$work/slow"
}

# file_system WORD [MKFS OPTIONS]: ext4 on $loop, mounted at $mounted, which ends in the word.
file_system() {
    mounted=$work/$1
    shift
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$@" "$loop" >/dev/null 2>&1 ||
        fail "cannot make a file system on $loop"
    mkdir -p "$mounted"
    mount ${mount_options:+-o "$mount_options"} "$loop" "$mounted" || fail "cannot mount $loop"
    later "unmount $mounted"
}

unmount() {
    for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        umount "$1" 2>/dev/null && return 0
        sleep 0.5
    done
    umount "$1"
}

# attribute FILE VALUE: writes to a file of /sys or /proc, and restores what it had.
attribute() {
    [ -e "$1" ] || skip "there is no $1"
    # The file of a choice has the chosen one in brackets.
    value_before=$(sed 's/.*\[\(.*\)\].*/\1/' "$1")
    later "echo '$value_before' >$1"
    echo "$2" >"$1" || skip "$1 does not take $2"
}

# disk_field DEVICE FIELD: a field of /sys/block/DEVICE/stat (1: reads, 3: sectors read, ...).
disk_field() {
    awk -v field="$2" '{ print $field }' "/sys/block/$1/stat"
}

# process_field PID NAME: what a process has read or written (read_bytes, write_bytes ...).
process_field() {
    awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/io"
}

# waits_in PID FUNCTION: the process is in a function of the kernel, at this look.
waits_in() {
    grep -q "$2" "/proc/$1/wchan" || grep -q "$2" "/proc/$1/stack"
}

# ---- control groups and processors

# group CONTROLLER WORD: a control group of version 1, named after the word; its folder is $group.
group() {
    [ -e "/sys/fs/cgroup/$1/cgroup.procs" ] || skip "there is no control group $1 of version 1"
    group=/sys/fs/cgroup/$1/$2-$short
    mkdir "$group" || fail "cannot make $group"
    later "ungroup $group"
}

ungroup() {
    for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        for process in $(cat "$1/cgroup.procs"); do
            kill -KILL "$process" 2>/dev/null
        done
        rmdir "$1" 2>/dev/null && return 0
        sleep 0.5
    done
    rmdir "$1"
}

# limit GROUP FILE VALUE
limit() {
    echo "$3" >"$1/$2" || skip "the kernel has no limit $2"
}

# ticks PID: processor time of a process and its threads, in hundredths of a second.
ticks() {
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

processors() {
    [ "$(nproc --all)" -ge "$1" ] || skip "it needs $1 processors"
}

for needed in $(sed -n 's/^# needs: //p' "$0"); do
    command -v "$needed" >/dev/null || skip "the program $needed is missing"
done
[ "$(id -u)" = 0 ] || skip "it needs root"
