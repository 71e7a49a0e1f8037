# What cases are written in. A command that fails ends the case: it has failed.

# A line for the report.
say() {
    echo "say $*" >/dev/ttyS1
}

# Ends the case.
fail() {
    echo "fail $*" >/dev/ttyS1
    sleep 1
    poweroff -f
}

# Ends the case: this machine or this recorder cannot do what it needs.
lack() {
    echo "lack $*" >/dev/ttyS1
    sleep 1
    poweroff -f
}

# until_true SECONDS COMMAND...: waits until the command succeeds.
until_true() {
    deadline=$(($(now) + $1 * 100))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$(now)" -lt "$deadline" ] || fail "waited in vain: $*"
        sleep 0.1
    done
}

# Hundredths of a second since the start.
now() {
    read -r uptime rest </proc/uptime
    echo "${uptime%.*}${uptime#*.}"
}

# Disks by number. A virtio disk has its letter from it, a SCSI disk its address: letters go to
# those in the order in which they are found.
disk() {
    letter=$(echo abcdefghijklmnopqrstuvwx | cut -c "$(($1 + 1))")
    attempts=50
    while [ "$attempts" -gt 0 ]; do
        for path in /sys/block/vd$letter /sys/class/scsi_disk/*:0:"$1":0/device/block/sd*; do
            if [ -b "/dev/${path##*/}" ]; then
                echo "/dev/${path##*/}"
                return
            fi
        done
        attempts=$((attempts - 1))
        sleep 0.1
    done
    fail "there is no disk $1"
}

sectors() {
    blockdev --getsz "$1"
}

# mapped NUMBER: member NUMBER as a device whose table can be exchanged while it is in use.
mapped() {
    device=$(disk "$1")
    dmsetup create "m$1" --table "0 $(sectors "$device") linear $device 0"
}

# exchange NUMBER TARGET PARAMETERS...: another table for a member. Requests under way are held.
exchange() {
    name=m$1
    shift
    dmsetup load "$name" --table "0 $(sectors "/dev/mapper/$name") $*"
    dmsetup suspend --noflush --nolockfs "$name"
    dmsetup resume "$name"
}

# healthy NUMBER: the member's table as it was at first.
healthy() {
    exchange "$1" linear "$(disk "$1")" 0
}

# create PARITY MEMBER...: a volume.
create() {
    parity=$1
    volume=$2
    shift 2
    arguments=
    for member in "$@"; do
        arguments="$arguments --member $member"
    done
    wirespool create "$volume" $arguments --parity "$parity" --raw --piece "${piece:-64K}" \
        ${create_options:-}
}

# record: starts recording what is sent.
record() {
    if [ ! -e /sys/class/net/wire0 ]; then
        echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
        # By its path: the shell would take its own, which knows no veth.
        /bin/ip link add wire0 type veth peer name wire1
        /bin/ip link set wire0 up
        /bin/ip link set wire1 up
    fi
    wirespool record "$volume" --interface wire1 --kernel-ring 32M --pool "${pool:-128M}" \
        ${record_options:-} >/tmp/record.out 2>/tmp/record.err &
    recorder=$!
    until_true 60 recording
}

recording() {
    [ -e "/proc/$recorder" ] || fail "the recorder ended: $(tail -n 1 /tmp/record.err)"
    # Its first line about progress: the volume is open.
    grep -q '^record:' /tmp/record.err
}

# send COUNT RATE: sends numbered packets.
sent=0
send() {
    lab send wire0 --from "$sent" --count "$1" --rate "$2"
    sent=$((sent + $1))
}

# stop STATUS...: ends the recording in order, and expects one of these exit statuses. 1 says that
# a member was left out on the way.
stop() {
    kill -INT "$recorder"
    status=0
    wait "$recorder" || status=$?
    cat /tmp/record.err /tmp/record.out
    say "record: exit status $status: $(head -n 1 /tmp/record.out)"
    grep '^members: ' /tmp/record.err | while read -r line; do say "record: $line"; done
    for expected in "$@"; do
        [ "$status" != "$expected" ] || return 0
    done
    fail "record ended with $status instead of $*"
}

# ended STATUS: the recording ends by itself, with this exit status.
ended() {
    until_true 30 gone
    status=0
    wait "$recorder" || status=$?
    cat /tmp/record.err /tmp/record.out
    say "record: exit status $status: $(tail -n 1 /tmp/record.err)"
    [ "$status" = "$1" ] || fail "record ended with $status instead of $1"
}

gone() {
    ! kill -0 "$recorder"
}

# The recorder went on without a member.
expelled() {
    grep -q "^recording went on without member $1 " /tmp/record.out ||
        fail "the recorder does not say that it went on without member $1"
}

nobody_expelled() {
    ! grep '^recording went on without' /tmp/record.out || fail 'a member was expelled'
}

# all_there: every packet sent comes out of the volume, once, byte for byte.
all_there() {
    status=0
    wirespool extract "$volume" udp --format pcap --force -w /tmp/extract.pcap >/tmp/extract.out \
        2>&1 || status=$?
    cat /tmp/extract.out
    found=$(lab check /tmp/extract.pcap --sent "$sent") || fail "of $sent packets: $found"
    say "$sent packets sent, $found; extract: exit status $status"
}

# all_there_without NUMBER...: the same while these members fail.
all_there_without() {
    for number; do exchange "$number" error; done
    all_there
    for number; do healthy "$number"; done
}

# first_there COUNT: at least so many of the first packets come out, and nothing else but some that
# follow them.
first_there() {
    status=0
    wirespool extract "$volume" udp --format pcap --force -w /tmp/extract.pcap >/tmp/extract.out \
        2>&1 || status=$?
    cat /tmp/extract.out
    found=$(lab check /tmp/extract.pcap --sent "$1" --or-more) || fail "of $1 packets: $found"
    say "$sent packets sent, $found; extract: exit status $status"
}

# does STATUS VERB ARGUMENTS...: a verb on the volume ends with this exit status.
does() {
    expected=$1
    verb=$2
    shift 2
    status=0
    wirespool "$verb" "$volume" "$@" >/tmp/verb.out 2>&1 || status=$?
    cat /tmp/verb.out
    say "$verb: exit status $status: $(tail -n 1 /tmp/verb.out)"
    [ "$status" = "$expected" ] || fail "$verb ended with $status instead of $expected"
}

# unplug NUMBER: takes a disk out of the running machine.
unplug() {
    device=$(disk "$1")
    echo "host device_del disk$1" >/dev/ttyS1
    until_true 60 absent "$device"
}

# plug NUMBER: puts such a disk back into the running machine.
plug() {
    echo "host device_add disk$1" >/dev/ttyS1
    disk "$1" >/dev/null
}

absent() {
    [ ! -e "/sys/block/${1##*/}" ]
}

# Bytes that all disks have taken so far.
written() {
    sync
    sum=0
    for stat in /sys/block/vd*/stat; do
        set -- $(cat "$stat")
        sum=$((sum + $7 * 512))
    done
    echo "$sum"
}

# amplified WHAT BYTES BEFORE: says how many bytes the disks took for each byte of WHAT.
amplified() {
    took=$(($(written) - $3))
    say "$1: $2 bytes in, $took bytes to the disks: $((took * 100 / $2)) for 100"
}

# rot NUMBER MEBIBYTE: 4 MiB of a disk, from there on, become something else, below everything that
# checks.
rot() {
    dd if=/dev/urandom of="$(disk "$1")" bs=1M seek="$2" count=4 conv=notrunc 2>/dev/null
    sync
    forget
}

# Nothing is answered from memory.
forget() {
    echo 3 >/proc/sys/vm/drop_caches
}

# The stack of layers that keeps data on disks by itself: below an array a check of each block, or
# none, above it encryption and a file system. stack MODE: journal, bitmap or plain.
stack() {
    for number in 0 1 2 3; do
        member=$(disk "$number")
        if [ "$1" != plain ]; then
            integritysetup format --batch-mode --sector-size 4096 "$member" >/dev/null
            bitmap=
            [ "$1" != bitmap ] || bitmap=--integrity-bitmap-mode
            integritysetup open $bitmap "$member" "i$number"
            member=/dev/mapper/i$number
        fi
        members="${members:-} $member"
    done
    mdadm --create /dev/md0 --run --level 6 --raid-devices 4 --chunk 64 --bitmap none $members
    until_true 200 settled
    key=$(seq 64 | md5sum | cut -c 1-32)$(seq 65 | md5sum | cut -c 1-32)
    dmsetup create plain --table "0 $(sectors /dev/md0) crypt aes-xts-plain64 $key 0 /dev/md0 0 1 \
        sector_size:4096"
    # By its path: the shell would take its own, which knows no ext4.
    /bin/mke2fs -q -t ext4 /dev/mapper/plain
    mkdir -p /tmp/data
    mount -t ext4 /dev/mapper/plain /tmp/data
}

settled() {
    [ "$(cat /sys/block/md0/md/sync_action)" = idle ]
}

# stored MEBIBYTES: a file on the stack, and what it cost.
stored() {
    before=$(written)
    dd if=/dev/urandom of=/tmp/data/file bs=1M count="$1" conv=fsync 2>/dev/null
    amplified "the stack" $(($1 * 1048576)) "$before"
    sum=$(sha256sum </tmp/data/file)
}

# The file is what it was.
same() {
    forget
    [ "$(sha256sum </tmp/data/file)" = "$sum" ]
}

# scrubbed CHECK|REPAIR: the array compares its disks; says what it found.
scrubbed() {
    echo "$1" >/sys/block/md0/md/sync_action
    until_true 200 settled
    say "md $1: $(cat /sys/block/md0/md/mismatch_cnt) sectors do not agree"
}

# Errors that members of the array gave while it read them, and that it mended.
mended() {
    sum_errors=0
    for errors in /sys/block/md0/md/dev-*/errors; do
        sum_errors=$((sum_errors + $(cat "$errors")))
    done
    echo "$sum_errors"
}

# mends MODE: the stack with a check of each block: md mends a disk that rots, then two at once.
mends() {
    stack "$1"
    stored 24
    rot 1 8
    same || fail 'the file came back wrong'
    [ "$(mended)" -gt 0 ] || fail 'md saw no error'
    say "md mended what dm-integrity found: $(mended) errors of members, the file is whole"
    scrubbed check
    rot 2 8
    rot 3 8
    same || fail 'the file came back wrong with two disks that rot'
    say 'two more disks rot in the same place: the file is whole'
}

# roundtrip PARITY MEMBER...: creates, records, extracts and verifies on healthy disks.
roundtrip() {
    create "$@"
    record
    send 8000 4000
    stop 0
    all_there
    does 0 verify
}
