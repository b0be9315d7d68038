#!/bin/bash
# spindle-io beside the engine's qemu-io: the same commands give the same text, exit status and content.
. "$(dirname "$0")/lib.sh"

# Programs' names and times differ, and our `read` does not list an option -a that does not exist.
normalise() {
    sed -E "s#([^ '\"]*/)?(qemu|spindle)-io#IO#g; s/ ops; .*\)$/ ops; TIME/; s/^([0-9]+,1),.*/\1,TIME/; s/^read \[-abC/read [-bC/"
}

run() {
    local program=$1
    shift
    rm -rf work
    mkdir work
    (
        cd work || exit 1
        truncate -s 10M a.raw
        printf hello >p
        timeout 60 "$program" "$@" </dev/null
        echo "status $?"
        md5sum -- *
        stat -c '%n %s' -- *
    ) >out 2>err
    { cat out; echo "stderr:"; cat err; } | normalise
}

# same NAME ARGS...
same() {
    local name=$1
    shift
    if [ -z "$engine_io" ]; then
        skip "$name" "no engine's qemu-io here"
        return
    fi
    run "$engine_io" "$@" >theirs
    run "$io" "$@" >ours
    diff theirs ours >why
    report "$name"
}

# commands NAME COMMAND...: on a writable raw image of 10 MiB.
commands() {
    local name=$1 args=()
    shift
    for command; do args+=(-c "$command"); done
    same "$name" -f raw "${args[@]}" a.raw
}

commands 'read and write' 'read 0 4k' 'write -P 0xab 4096 1000' 'read -P 0xab 4096 1000' 'read -v 4090 40' 'r 0 1' 'w 0 1'
commands 'verification that fails' 'write -P 1 0 4k' 'read -P 2 0 4k' 'read -P 1 -s 5 0 10' 'read -P 1 -s 5 -l 10 0 10' 'read 0 1'
commands 'sizes and suffixes' 'read 1M 1k' 'read 0x200 512' 'read 1.5k 512' 'write 0 0' 'read x 1' 'read 0 x' 'read 0 3G' 'read 1E 1' 'read 16E 1'
commands 'ranges outside' 'read 10M 1' 'read 0 11M' 'write 10485759 2' 'readv 10M 1' 'writev 10485759 2' 'write -z 9M 2M' 'discard 10M 1' 'aio_read 10M 1' aio_flush 'aio_write 10M 1' aio_flush
commands 'counts of arguments' read 'read 0' 'length x' 'map x' truncate 'sleep' 'flush x' aio_read 'alloc' ''
commands 'options' 'read -Z 0 1' 'read 0 -P 0 512' 'read 0 512 -q' 'read -1 5' 'read -P 1000 0 1' 'read -s 5 0 10' 'read -l 5 0 10' 'read -C 0 512' 'read -p 0 512' 'read -r 0 512'
commands 'options of write' 'write -z -P 1 0 1' 'write -u 0 1' 'write -n 0 4k' 'write -z -n 0 4k' 'write -f 0 4k' 'write -zf 0 512' 'write -z -u 4k 4k' 'write -c 0 512' 'write -b 0 512' 'read -b 0 512'
commands 'a pattern from a file' 'write -s p 0 1024' 'read -v 0 32' 'write -s nosuch 0 512' 'write -s /dev/null 0 512'
commands 'vectors' 'readv 0 512 1k 512' 'writev -P 3 0 512 1024' 'readv -v 500 20' 'writev 0 x' 'writev -P 4 0 1' 'readv -P 4 0 1'
commands 'asynchronous' 'aio_read 0 4k' aio_flush 'aio_write -P 5 0 4k 1k' aio_flush 'aio_read -v 0 32' aio_flush 'aio_discard 0 1M' aio_flush 'aio_write -z 0 4k 5k' 'aio_write -u 0 1M' 'aio_read -i 0 1' 'aio_write -i 0 1' aio_flush
commands 'discard, flush, length' flush 'discard 0 1M' 'discard 1 100' length info map 'alloc 0 10M' 'alloc 1 1' 'alloc 20M'
commands 'truncate' 'write -P 1 0 4k' 'truncate 11M' length 'truncate 1k' 'read -P 1 0 1k' 'truncate x'
commands 'sleep' 'sleep 10' 'sleep x'
commands 'reopen' 'write 0 512' 'reopen -r' 'write 0 1' 'reopen -w' 'write 0 1' 'reopen -c bogus' 'reopen -c none' 'write 512 512'
commands 'quit ends the commands' quit length
commands 'unknown' 'bogus 1' 'help bogus'
same 'read-only' -f raw -r -c 'write 0 1' -c 'discard 0 512' -c 'truncate 1M' -c 'aio_write 0 1' -c 'read 0 1' a.raw
same 'no file' -c length -c 'read 0 1' -c close
same 'misaligned memory with O_DIRECT' -m -n -f raw -c 'write -P 7 100 5000' -c 'read -P 7 100 5000' -c 'write -P 8 0 1M' a.raw
same 'no such file' nosuch
same 'unknown format' -f bogus a.raw
same 'bad cache mode' -f raw -t bogus a.raw
same 'bad discard mode' -f raw -d bogus a.raw
same 'bad aio mode' -f raw -i bogus a.raw
same 'format and option string' --image-opts -f raw driver=raw
same 'a secret without data' --object secret,id=x a.raw
same 'an unknown object' --object bogus,id=x a.raw
same 'an option string' --image-opts -c length -c 'write -P 9 0 512' -c 'read -P 9 0 512' driver=raw,file.filename=a.raw
same 'the discard mode off' -d off -f raw -c 'write 0 1M' -c 'discard 0 1M' -c 'read -P 0xcd 0 1M' a.raw

# The commands that open and close; the engine warns about probing, which says nothing about us.
rm -rf work && mkdir work && truncate -s 1M work/a.raw && printf pass >work/pass
in_work() { (cd work && "$io" "$@" </dev/null) >why 2>&1; }
in_work -c 'open a.raw' -c length -c close -c 'open -r a.raw' -c 'read 0 1' -c close -c 'open -o driver=raw,file.filename=a.raw' -c 'write 0 1' -c close
report 'open, close, open again'
! in_work -c 'open -r a.raw' -c 'write 0 1' && ! in_work -c 'open nosuch' && ! in_work -c 'open' && ! in_work -c 'open -t bogus a.raw' && ! in_work -c 'open a.raw' -c 'open a.raw' && ! in_work -c 'open a.raw b.raw' && ! in_work -c 'open -x a.raw'
report 'open: what cannot be'
! in_work -f raw -c 'read 0 1' -c abort -c 'read 0 1' a.raw && grep -q 'read 1/1' why && ! in_work -f raw -c 'sigraise 15' a.raw
report 'abort, sigraise'

# Commands from standard input.
rm -rf work && mkdir work && truncate -s 1M work/a.raw
if [ -n "$engine_io" ]; then
    script='read 0 512\nlength\n\nbogus\nquit\nlength\n'
    (cd work && printf "$script" | "$engine_io" -f raw a.raw 2>&1; echo "status $?") | normalise | sed 's/IO> //g' >theirs
    (cd work && printf "$script" | "$io" -f raw a.raw 2>&1; echo "status $?") | normalise | sed 's/IO> //g' >ours
    diff <(sort theirs) <(sort ours) >why
    report 'commands from standard input'
else
    skip 'commands from standard input' "no engine's qemu-io here"
fi
finish
