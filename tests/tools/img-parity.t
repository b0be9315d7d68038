#!/bin/bash
# spindle-img beside the engine's qemu-img: the same command lines give the same text, exit status and files.
. "$(dirname "$0")/lib.sh"

make_images() {
    printf pw >pass
    truncate -s 8M s.raw
    head -c 70000 /dev/zero | tr '\0' x | dd of=s.raw bs=64k seek=16 conv=notrunc status=none
    head -c 4096 /dev/zero | tr '\0' y | dd of=s.raw bs=1M seek=5 conv=notrunc status=none
    cp --sparse=always s.raw t.raw
    cp --sparse=always s.raw u.raw
    truncate -s 9M u.raw
    printf z | dd of=u.raw bs=1 seek=8500000 conv=notrunc status=none
    truncate -s 10M a.raw
    head -c 512 /dev/urandom >q.raw
    "$engine_img" create -q --object secret,id=s0,file=pass -f luks -o key-secret=s0,iter-time=10 l.luks 1M
}

# Names of programs, times and hints differ.
normalise() { sed -E "s#([^ '\"]*/)?(qemu|spindle)-img#IMG#g; s/[0-9]+\.[0-9]+ seconds/T seconds/"; }

# run PROGRAM SCRIPT: `q …` in the script is the program; prints what is to be compared.
run() {
    local program=$1
    rm -rf work
    cp -a base work
    (
        cd work || exit 1
        q() { timeout 60 "$program" "$@" </dev/null; echo "status $?"; }
        eval "$2"
        cksum -- *
    ) >out 2>err
    { cat out; echo "stderr:"; cat err; } | normalise
}

same() {
    run "$engine_img" "$1" >theirs
    run "$img" "$1" >ours
    diff theirs ours >why
    report "$1"
}

secret='--object secret,id=s0,file=pass'
luks='--image-opts driver=luks,key-secret=s0,file.filename=l.luks'

cases() {
    cat <<EOF
q create n.raw 10M
q create -f raw -o preallocation=falloc b.raw 1M
q create
q create x
q create x 0
q create -f bogus x 1M
q create /nonexistent/x 1M
q create x -- -5
q create x 1x
q create x 99E
q create -f raw -o preallocation=bogus x 1M
q create -o size=2M x
q create -o size=1x x
q create -o size=99E x
q create -o bogus=1 x 1M
q create x 1M extra
q create -Z x
q create -q q.raw 1024
q create -f luks l2.luks 1M
q create -f luks -o key-secret=nos l2.luks 1M
q info a.raw
q info -f raw q.raw
q info -f raw l.luks
q info -t none a.raw
q info --image-opts driver=raw,file.filename=s.raw
q info --image-opts driver=file,filename=s.raw
q info nosuch
q info
q info -f luks a.raw
q info --output=xml a.raw
q map s.raw
q map --output=json s.raw
q map -s 1M -l 1M --output=json s.raw
q map q.raw
q map -s 9M s.raw
q map nosuch
q measure -O raw s.raw
q measure --output=json -O raw --size 10M
q measure
q measure -O bogus --size 1
q check a.raw
q check --output=json a.raw
q check nosuch
q compare s.raw t.raw
q compare s.raw a.raw
q compare s.raw u.raw
q compare -s s.raw u.raw
q compare s.raw nosuch
q compare s.raw
q compare -q s.raw a.raw
q compare a.raw q.raw
q compare -T bogus a.raw q.raw
q convert s.raw c.raw
q convert -m 16 -W s.raw c.raw
q convert -t none -T none s.raw c.raw
q convert -t directsync u.raw c.raw
q convert q.raw c.raw
q convert -S 0 s.raw c.raw
q convert -f raw -O raw s.raw a.raw e.raw
q convert --salvage s.raw c.raw
q convert $secret $luks back.raw
cp s.raw c.raw; q convert -n --target-image-opts s.raw driver=raw,file.filename=c.raw
cp u.raw c.raw; q convert -n s.raw c.raw
cp u.raw c.raw; q convert -n a.raw c.raw
q convert -O bogus s.raw c2
q convert s.raw
q convert nosuch c2
q convert -n s.raw nosuch
q convert -n s.raw q.raw
q convert -S bogus s.raw c.raw
q convert -m 0 s.raw c.raw
q convert -m 17 s.raw c.raw
q convert -T bogus s.raw c.raw
q convert s.raw s.raw
q convert --target-is-zero s.raw c.raw
q convert -o bogus=1 s.raw c.raw
q convert -C -S 4k s.raw c.raw
q convert -r x s.raw c.raw
q convert -c s.raw c.raw
q convert --object secret,id=s0,data=wrong $luks back.raw
q convert --image-opts driver=luks,file.filename=l.luks back.raw
q convert -f luks l.luks back.raw
q convert l.luks back.raw
q convert s.raw /nonexistent/y
q convert --target-image-opts s.raw driver=raw,file.filename=c.raw
q convert --image-opts -f raw x y
q resize -f raw a.raw 12M
q resize -f raw a.raw +1M
q resize -f raw a.raw 1M
q resize -f raw --shrink a.raw -- -1M
q resize -f raw --shrink a.raw -4K
q resize -f raw --preallocation=falloc a.raw +8K
q create -f raw -o extent_size_hint=1M hint.raw 1M
q resize -f raw --shrink a.raw 0
q resize -f raw a.raw x
q resize -f raw a.raw
q resize -f raw a.raw 12884901888E
q resize -f raw nosuch 1
q resize -f raw a.raw -- -99999
q resize -f raw --preallocation=full a.raw 1M
q dd if=s.raw of=d.raw bs=1M count=2
q dd if=s.raw of=d.raw bs=1M skip=1
q dd if=s.raw of=d.raw skip=100M
q dd if=s.raw
q dd of=x
q dd if=s.raw of=d.raw bs=0
q dd if=s.raw of=d.raw bs=x
q dd if=s.raw of=d.raw skip=x
q dd if=s.raw of=d.raw foo=x
q dd if=s.raw of=d.raw foo
q dd if=nosuch of=d.raw
q dd -n if=s.raw of=d.raw
q bench -q -c 10 s.raw
q bench -q -c 10 -w -f raw a.raw
q bench -q -c 10 -w --flush-interval 5 -d 2 -f raw a.raw
q bench -q -S 1M -o 1M -c 3 s.raw
q bench -c 0 s.raw
q bench -d 0 s.raw
q bench -s 0 s.raw
q bench -c 10 -s 20M s.raw
q bench --flush-interval 5 s.raw
q bench -i x s.raw
q bench -o x s.raw
q bench -w --pattern 256 s.raw
q bench -w --flush-interval 2 -d 5 -c 5 -f raw s.raw
q amend -f luks l.luks
q amend $secret -o state=inactive,keyslot=0 $luks
q amend $secret -o bogus=inactive,keyslot=0 $luks
q amend $secret --force -o state=bogus,keyslot=0 $luks
q amend -f raw -o size=1 a.raw
q amend -f raw -o help
q bogus
q
q --bogus
q -T nosuch check s.raw
q info -U a.raw
q info -Z a.raw
q info a.raw s.raw
q info ''
q info /
q info --object secret a.raw
q info -f raw --image-opts a.raw
q check -r bogus a.raw
q check -f bogus a.raw
q check --output=xml a.raw
q check a.raw s.raw
q check -q a.raw
q check l.luks
q measure -O raw --size 1x
q measure -O raw --size -1
q measure -O raw s.raw --size 1M
q measure -U -O raw s.raw
q measure -f bogus -O raw s.raw
q measure $secret -O raw $luks
q measure --output=json -O raw q.raw
q measure -O raw --size 8E
q map -U s.raw
q map -f bogus s.raw
q map -s x s.raw
q map -l 0 s.raw
q map --output=json $secret $luks
q map --max-length=2M --start-offset=512K s.raw
q dd if=s.raw of=d.raw bs=512 count=3
q dd if=s.raw of=d.raw bs=1M count=0
q dd if=s.raw of=d.raw bs=4G
q dd -U if=s.raw of=d.raw bs=1M
q compare -f bogus s.raw t.raw
q compare -U s.raw t.raw
q compare s.raw t.raw u.raw
q compare -s a.raw q.raw
q compare --image-opts -f raw a b
q resize -f raw a.raw -1M
q resize -f raw --shrink a.raw -1M
q resize -f raw a.raw 12M extra
q resize -f raw a.raw ''
q resize -f raw a.raw +
q resize -f raw a.raw 1000
q resize -f raw a.raw +0
q resize -f raw q.raw +100
q resize -f raw --shrink --preallocation=full a.raw 1M
q convert -U s.raw c.raw
q convert -S 3M s.raw c.raw
q convert -n -o size=1 s.raw a.raw
q convert --image-opts driver=raw,offset=1M,size=513,file.filename=s.raw c.raw
q convert --image-opts driver=raw,offset=100M,file.filename=s.raw c.raw
q convert -q -p s.raw c.raw
q convert -n $secret --target-image-opts s.raw driver=luks,key-secret=s0,file.filename=l.luks
q convert -o preallocation=full q.raw c.raw
q convert --object secret,id=s0,data=x --object secret,id=s0,data=y s.raw c.raw
q convert --object secret,id=s0 s.raw c.raw
q convert --object secret,id=s0,data=x,format=bogus s.raw c.raw
q convert --object secret,data=x s.raw c.raw
q convert s.raw .
q convert . c.raw
q create -f raw n.raw 1
q create -f raw n.raw 1.5M
q create -f raw n.raw '1M '
q create -f raw -o size=1M n.raw
q create -f raw -o size=1M n.raw 2M
q create . 1M
q bench -c x s.raw
q bench -q -n -c 10 s.raw
q bench -q -i native -t none -c 10 s.raw
q bench -f bogus s.raw
q bench s.raw t.raw
q amend $secret -o state=active $luks
q amend $secret -o state=inactive,old-secret=nos $luks
ln -s a.raw link; q convert s.raw link; stat -c %N link
ln -s nosuch link; q info link
truncate -s 0 e.raw; q convert e.raw c.raw
truncate -s 0 e.raw; q compare e.raw q.raw
EOF
}

if [ -z "$engine_img" ]; then
    while read -r line; do skip "$line" "no engine's qemu-img here"; done < <(cases)
    finish
fi
mkdir base
(cd base && make_images) || { echo "Bail out! no images"; exit 1; }
while read -r line; do same "$line"; done < <(cases)

# As data: the order of members and what only we tell do not count.
same_json() {
    local script='
import json, sys
ours, theirs = (json.load(open(f)) for f in sys.argv[1:])
def within(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and all(k in b and within(v, b[k]) for k, v in a.items() if k not in ("children", "name") or k in b)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(within, a, b))
    return a == b
for node in (ours, theirs):
    for child in node["children"]:
        child["info"].pop("format-specific", None)
if not within(theirs, ours):
    sys.exit("theirs: %s\nours: %s" % (theirs, ours))
'
    (cd base && "$engine_img" info --output=json "$1") >theirs
    (cd base && "$img" info --output=json "$1") >ours
    python3 -c "$script" ours theirs >why 2>&1
    report "info --output=json $1"
}
for image in a.raw q.raw l.luks; do same_json $image; done

# Text lines of info about LUKS, in any order.
(cd base && "$engine_img" info l.luks) | sort >theirs
(cd base && "$img" info l.luks) | sort >ours
comm -23 theirs ours >why
[ ! -s why ]
report 'info tells all that the engine tells about LUKS'
finish
