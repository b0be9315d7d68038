#!/bin/bash
# spindle-img's copies: content, holes, sizes, encryption, faults, interruption, memory, pictures.
. "$(dirname "$0")/lib.sh"

printf 'a pass' >pass
secret=(--object secret,id=s0,file=pass)
# No time is spent on measuring how fast the key derivation is.
fast=pbkdf-iterations=1000
kib_of() { echo $(($(stat -c %b "$1") / 2)); }

# An image with data and zeros in pieces of many lengths, some of the zeros written and some holes.
python3 - <<'EOF'
import random
random.seed(7)
with open("mixed.raw", "wb") as f:
    at = 0
    while at < 12 << 20:
        size = random.choice([1, 100, 511, 512, 4095, 4096, 5000, 65536, 300000, 1 << 20])
        kind = random.randrange(3)
        if kind == 0:
            f.seek(at)
            f.write(random.randbytes(size))
        elif kind == 1:
            f.seek(at)
            f.write(bytes(size))
        at += size
    f.truncate(at)
EOF

# Copies are equal, whatever the options.
for options in '' '-W' '-m 1' '-W -m 16' '-S 0' '-S 512' '-S 64k' '-S 1M' '-S 8M' '-t none -T none' '-t writeback' '-t directsync -W' '-r 1G' '-q'; do
    # shellcheck disable=SC2086
    check "convert $options" "$img" convert $options mixed.raw "copy.raw"
    check "convert $options: content" cmp mixed.raw copy.raw
    rm -f copy.raw
done

# Sizes that are no multiple of anything.
for size in 0 1 511 513 4097 1048575 1048577 3000000; do
    head -c $size mixed.raw >part.raw
    "$img" convert part.raw part.copy && cmp part.raw part.copy && [ "$(stat -c %s part.copy)" = $size ]
    report "convert of $size bytes"
done

"$img" convert -f raw part.raw mixed.raw part.raw both.raw && cat part.raw mixed.raw part.raw | cmp - both.raw >why
report 'several sources'

# Holes.
truncate -s 256M holes.raw
printf x | dd of=holes.raw bs=1 seek=190000000 conv=notrunc status=none
"$img" convert holes.raw holes.copy && [ "$(kib_of holes.copy)" -le 64 ] && cmp holes.raw holes.copy >why
report 'holes stay holes'
head -c 8M /dev/zero >zeros.raw
"$img" convert zeros.raw zeros.copy && [ "$(kib_of zeros.copy)" -le 8 ]
report 'zeros become holes'
"$img" convert -S 0 zeros.raw zeros.copy && [ "$(kib_of zeros.copy)" -ge 8192 ]
report 'with -S 0 they do not'
head -c 12M /dev/urandom >old.raw
truncate -s 13M old.raw
"$img" convert -n zeros.raw old.raw && cmp -n 8388608 zeros.raw old.raw && [ "$(stat -c %s old.raw)" = 13631488 ]
report 'with -n zeros replace what was there, and what lies beyond stays'
cp mixed.raw old.raw && "$img" convert zeros.raw old.raw && cmp zeros.raw old.raw
report 'an existing target is replaced'

# Disc images: the user data of the data track, whatever the sectors are stored as.
python3 - <<'EOF'
kinds = {"MODE1/2352": (b"s" * 16, 288), "MODE2/2352": (b"s" * 24, 280), "MODE2/2336": (b"s" * 8, 280), "MODE1/2048": (b"", 0)}
want = b"".join(bytes([i % 251 + 1]) * 2048 for i in range(700))
open("want.iso", "wb").write(want)
for name, (head, tail) in kinds.items():
    stem = name.replace("/", "-")
    with open(stem + ".bin", "wb") as f:
        for i in range(0, len(want), 2048):
            f.write(head + want[i:i + 2048] + b"e" * tail)
    open(stem + ".cue", "w").write('FILE "%s.bin" BINARY\n  TRACK 01 %s\n    INDEX 01 00:00:00\n' % (stem, name))
open("audio.bin", "wb").write(bytes(2352 * 600))
open("audio.cue", "w").write('FILE "audio.bin" BINARY\n  TRACK 01 AUDIO\n    INDEX 01 00:00:00\n')
EOF
for kind in MODE1-2352 MODE2-2352 MODE2-2336 MODE1-2048; do
    "$img" convert $kind.cue disc.iso 2>why && cmp want.iso disc.iso >why
    report "a disc image of $kind to an ISO"
done
refuses 'an audio disc is no ISO' "*'audio.cue' has no data track*" "$img" convert audio.cue disc.iso

# Encryption: there and back, LUKS1 and LUKS2, and the tail of a size that fills no sector.
for format in version=1 version=2,pbkdf=pbkdf2 version=2,pbkdf=pbkdf2,sector-size=4096; do
    "$img" convert -W "${secret[@]}" -O luks -o key-secret=s0,$fast,$format mixed.raw c.luks >why 2>&1 &&
        "$img" convert "${secret[@]}" --image-opts driver=luks,key-secret=s0,file.filename=c.luks back.raw >>why 2>&1 &&
        cmp -n "$(stat -c %s mixed.raw)" mixed.raw back.raw >>why
    report "convert to luks ($format) and back"
    "$img" compare -q "${secret[@]}" --image-opts driver=raw,file.filename=mixed.raw driver=luks,key-secret=s0,file.filename=c.luks >why 2>&1
    report "compare with luks ($format): the tail is zeros"
    "$img" info c.luks | grep -q '^file format: luks$' && "$img" info c.luks | grep -q '^encrypted: yes$'
    report "info of luks ($format) needs no key"
done
if [ -n "$engine_img" ]; then
    "$img" convert "${secret[@]}" -O luks -o key-secret=s0,$fast mixed.raw c.luks &&
        "$engine_img" compare -q "${secret[@]}" --image-opts driver=raw,file.filename=mixed.raw driver=luks,key-secret=s0,file.filename=c.luks >why 2>&1
    report 'the engine reads our luks image'
else
    skip 'the engine reads our luks image' "no engine's qemu-img here"
fi

# Key slots.
printf 'another' >pass2
opened() { "$img" convert -q --object secret,id=k,file="$1" --image-opts driver=luks,key-secret=k,file.filename=c.luks key.raw 2>why; }
both=("${secret[@]}" --object secret,id=s1,file=pass2)
"$img" create -q "${secret[@]}" -f luks -o key-secret=s0,$fast c.luks 64k
check 'amend adds a passphrase' "$img" amend "${both[@]}" -o state=active,new-secret=s1,$fast --image-opts driver=luks,key-secret=s0,file.filename=c.luks
opened pass && opened pass2
report 'both passphrases open the image'
check 'amend erases a passphrase' "$img" amend "${both[@]}" -o state=inactive,old-secret=s0 c.luks
! opened pass && opened pass2
report 'only the other one opens it'
refuses 'amend does not erase the last one' '*refusing operation*' "$img" amend "${both[@]}" -o state=inactive,old-secret=s1 c.luks
check 'amend changes a passphrase' "$img" amend "${both[@]}" -o state=changed,new-secret=s0,$fast --image-opts driver=luks,key-secret=s1,file.filename=c.luks
opened pass && ! opened pass2
report 'the new passphrase opens the image, the old one does not'
refuses 'a detached header holds no data' '*detached header*' "$img" convert "${secret[@]}" -O luks -o key-secret=s0,detached-header=on,$fast mixed.raw d.luks
check 'create of a detached header' "$img" create -q "${secret[@]}" -f luks -o key-secret=s0,detached-header=on,$fast head.luks 1M
truncate -s 1M payload
detached=driver=luks,key-secret=s0,file.filename=payload,header.filename=head.luks
head -c 1M old.raw >one.raw
check 'convert to a payload beside its header' "$img" convert -n "${secret[@]}" --target-image-opts one.raw $detached
check 'and back' "$img" convert "${secret[@]}" --image-opts $detached one.back
check 'and back: content' cmp one.raw one.back
check 'amend of a detached header' "$img" amend "${both[@]}" -o state=active,new-secret=s1,$fast --image-opts $detached
check 'its new passphrase opens the payload' "$img" convert "${both[@]}" --image-opts "${detached/s0/s1}" one.back

# Faults.
fault='json:{"driver": "fault", "file": {"driver": "file", "filename": "mixed.raw"}, '
refuses 'a read error ends the copy and removes the target' '*error while reading at byte *: Input/output error*' \
    "$img" convert "$fault"'"bad-offset": 5000000, "bad-bytes": 700}' broken.raw
[ ! -e broken.raw ]
report 'no half image stays'
"$img" convert --salvage "$fault"'"bad-offset": 5000192, "bad-bytes": 512}' saved.raw 2>why && grep -q 'warning: error while reading' why &&
    python3 -c '
a, b = (open(f, "rb").read() for f in ("mixed.raw", "saved.raw"))
assert len(a) == len(b)
lost = range(5000192 // 512 * 512, (5000192 + 512 + 511) // 512 * 512)
assert a[:lost.start] == b[:lost.start] and a[lost.stop:] == b[lost.stop:]' 2>>why
report 'with --salvage only the unreadable sectors are lost'
refuses 'a write error with -n' '*error while writing at byte *' "$img" convert -n --target-image-opts mixed.raw \
    'driver=fault,fail-write=3,file.driver=file,file.filename=both.raw'
[ -e both.raw ]
report 'with -n the target stays'
"$img" compare mixed.raw "$fault"'"fail-read": 2}' >/dev/null 2>&1
[ $? -eq 4 ]
report 'compare: a read error is status 4'

ln -s real.raw link.raw
for target in link.raw file:real.raw; do
    refuses "a failed copy to $target leaves nothing behind" '*error while reading*' "$img" convert "$fault"'"bad-offset": 5000000, "bad-bytes": 700}' $target
    [ ! -e real.raw ] && [ ! -e file:real.raw ]
    report "a failed copy to $target leaves nothing behind: files"
done
"$img" convert mixed.raw link.raw && [ -L link.raw ] && cmp mixed.raw real.raw
report 'a copy through a link keeps the link'

# Interruption.
for signal in INT TERM HUP; do
    "$img" convert -r 1M mixed.raw stopped.raw 2>/dev/null &
    pid=$!
    for _ in $(seq 100); do [ ! -e stopped.raw ] || break; sleep 0.05; done
    sleep 0.2
    # A shell's background jobs ignore SIGINT; programs that set a handler take it all the same.
    kill -$signal $pid
    wait $pid 2>/dev/null
    status=$?
    [ $status -eq $((128 + $(kill -l $signal))) ] && [ ! -e stopped.raw ]
    report "SIG$signal ends the copy and removes the target"
done
"$img" convert -n -r 1M mixed.raw both.raw 2>/dev/null &
pid=$!
sleep 0.5
kill -TERM $pid
wait $pid
[ -e both.raw ]
report 'with -n the target stays when the copy is interrupted'
"$img" convert -r 8M mixed.raw usr1.raw 2>why &
pid=$!
sleep 0.7
kill -USR1 $pid
wait $pid && grep -q '^    ([0-9.]*/100%)' why
report 'SIGUSR1 prints the progress and the copy goes on'

# Progress, picture, memory.
"$img" convert -p mixed.raw p.raw >lines && head -n 1 lines | grep -q '^    (0.00/100%)' && tail -n 1 lines | grep -q '^    (100.00/100%)'
report '-p prints lines where there is no terminal'
"$img" convert mixed.raw p.raw >lines && [ ! -s lines ]
report 'without -p nothing is printed'
# on_terminal PATTERN COMMAND...: what the command shows on a terminal has the pattern.
on_terminal() {
    python3 - "$@" >why 2>&1 <<'EOF'
import os, pty, re, sys
shown = b""
pid, fd = pty.fork()
if not pid:
    os.execv(sys.argv[2], sys.argv[2:])
while True:
    try:
        piece = os.read(fd, 4096)
    except OSError:  # the other end is closed
        break
    if not piece:
        break
    shown += piece
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(status, shown)
sys.exit(status or not re.fullmatch(sys.argv[1].encode(), shown, re.S))
EOF
}
on_terminal '(\r  \[[=> ]+\] +[0-9.]+ %  [0-9.]+ [KMG]iB/s  [^\r]*){2,}.*100\.0 %.*\n' "$img" convert -r 20M mixed.raw p.raw
report 'on a terminal there is a bar with the rate and the time left'
on_terminal '' "$img" convert -q mixed.raw p.raw
report 'but not with -q'
"$img" convert --plot plot.png -r 40M mixed.raw p.raw && python3 - 2>why <<'EOF'
import struct, zlib
data = open("plot.png", "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
at, chunks = 8, []
while at < len(data):
    size, kind = struct.unpack(">I4s", data[at:at + 8])
    body = data[at + 8:at + 8 + size]
    assert struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
    chunks.append((kind, body))
    at += 12 + size
assert [k for k, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
width, height = struct.unpack(">II", chunks[0][1][:8])
rows = zlib.decompress(chunks[1][1])
assert len(rows) == height * (1 + 3 * width)
colours = {rows[y * (1 + 3 * width) + 1 + 3 * x:][:3] for y in range(0, height, 3) for x in range(0, width, 3)}
assert b"\xff\xff\xff" in colours and b"\x22\x66\xbb" in colours, colours
EOF
report '--plot draws a picture'
refuses '--plot into no folder' "*Could not open '/nonexistent/p.png': No such file or directory*" "$img" convert --plot /nonexistent/p.png mixed.raw p.raw
# 64 reads of 50 ms each: one after the other they take 3.2 s.
slow=driver=fault,delay-ns=50000000,file.driver=file,file.filename=slow.raw
head -c 64M /dev/urandom >slow.raw
for order in -W ''; do
    began=$(date +%s%N)
    # shellcheck disable=SC2086
    "$img" convert -m 16 $order --image-opts "$slow" slow.copy
    took=$((($(date +%s%N) - began) / 1000000))
    echo "$took ms" >why
    [ $took -lt 1600 ] && cmp slow.raw slow.copy
    report "requests to slow storage overlap${order:+ with $order}"
done
rm slow.raw slow.copy
# The kernel starts to write what a flush will ask for while the rest is still being copied.
if [ "$(stat -f -c %T .)" = tmpfs ]; then
    skip 'writing to the disk begins during the copy' 'the scratch folder is no disk'
else
    strace -f -e trace=sync_file_range,fdatasync -o calls "$img" convert -t writeback mixed.raw behind.raw 2>why
    grep -o 'sync_file_range\|fdatasync' calls | uniq | tr '\n' ' ' >why
    [ "$(cat why)" = 'sync_file_range fdatasync ' ]
    report 'writing to the disk begins during the copy'
    rm -f calls behind.raw
fi
# The payload of 4 GiB goes nowhere: only its size counts.
peak_of_big_copy() {
    python3 - "$img" convert -n -W -m 16 "${secret[@]}" "$@" <<'EOF'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print("peak of %d KiB" % peak)
sys.exit(peak > 64 * 1024)
EOF
}
nowhere=file.driver=null-co,file.size=4G
big=driver=luks,key-secret=s0,header.filename=big.head,$nowhere
"$img" create -q "${secret[@]}" -f luks -o key-secret=s0,detached-header=on,$fast big.head 4G
truncate -s 4G big.raw
for way in driver=raw,file.filename=big.raw:$big $big:driver=raw,$nowhere; do
    source=${way%%:*}
    name="a copy of 4 GiB with -m 16 takes no more than 64 MiB: from ${source%%,*}"
    if grep -q __asan_init "$img"; then
        skip "$name" 'AddressSanitizer takes more'
    else
        peak_of_big_copy --image-opts --target-image-opts "$source" "${way#*:}" >why 2>&1
        report "$name"
    fi
done

# Secrets on the command line.
for form in "--object secret,id=k,data=hushhush" "--object=secret,id=k,data=hushhush" '--object {"qom-type":"secret","id":"k","data":"hushhush"}'; do
    # shellcheck disable=SC2086
    rm -f secret.raw
    "$img" convert $form -r 2M mixed.raw secret.raw 2>/dev/null &
    pid=$!
    for _ in $(seq 100); do [ ! -s secret.raw ] || break; sleep 0.05; done
    tr '\0' ' ' <"/proc/$pid/cmdline" >why
    kill $pid
    wait $pid 2>/dev/null
    ! grep -q hushhush why && grep -q 'id' why
    report "${form%%[ =]*}${form:8:9}… is not shown with its data"
done

# Output that cannot be written is a failure.
for line in 'info mixed.raw' 'map mixed.raw' 'measure -O raw mixed.raw' 'compare mixed.raw mixed.raw' 'create full.raw 1M' \
    'bench -c 10 mixed.raw' '--help' 'check --help'; do
    # shellcheck disable=SC2086
    refuses "$line > /dev/full" '*write error: *' sh -c '"$@" >/dev/full' sh "$img" $line
done
for type in secret,data=x tls-creds-psk,dir=/; do
    refuses "an id of ${type%%,*} that is none" "*Parameter 'id' expects an identifier*" "$img" info --object $type,id=0bad mixed.raw
done
# Targets that are the source, by whatever name, or no image at all.
cp mixed.raw same.raw && ln same.raw hard.raw && ln -s same.raw soft.raw && mkfifo pipe
for target in same.raw hard.raw soft.raw; do
    refuses "convert onto its own source as $target" '*Failed to get "write" lock*' "$img" convert same.raw $target
    cmp mixed.raw same.raw >why
    report "which stays as it was"
done
for target in pipe /dev/full /dev/null .; do
    refuses "convert to $target" "*'$target'*" timeout 20 "$img" convert mixed.raw $target
done
rm same.raw hard.raw soft.raw pipe

# Help.
for command in amend bench check compare convert create dd info map measure resize; do
    "$img" $command --help >why && grep -q '^Usage:' why && grep -q '^Examples:' why && grep -q "^  spindle-img $command" why &&
        { [ $command = dd ] || grep -q -- '-h, --help' why; }
    report "$command --help has examples"
done
"$img" --help >why && grep -q 'spindle-img convert' why && "$io" --help >why && grep -q '^Examples:' why
report 'both programs have help'
finish
