#!/bin/bash
# The cache of fetched and built things: complete or absent, whatever happens on the way.
. "$(dirname "$0")/../../scripts/lib/common.sh"
sandbox=$(mktemp -d)
trap 'rm -rf "$sandbox"' EXIT
export SPINDLE_CACHE="$sandbox/a folder"
count=0
failed=0

ok() {
    local good=$1
    shift
    count=$((count + 1))
    if [ "$good" = 0 ]; then echo "ok $count - $*"; else echo "not ok $count - $*"; failed=1; fi
}

slow() { touch "$sandbox/started"; sleep "$2"; echo "$3" >"$1/out"; echo made >>"$sandbox/log"; }
broken() { echo half >"$1/out"; false; echo "not reached" >"$1/out"; }
empty() { :; }

target=$(cache_dir)/thing
[ "$target" = "$sandbox/a folder/thing" ]; ok $? 'the cache folder is what SPINDLE_CACHE names'

(build_once "$target" broken) 2>/dev/null
ok $((1 - ($? != 0))) 'a failed step is a failure'
[ ! -e "$target" ]; ok $? 'and leaves nothing under the name'
(build_once "$target" empty) 2>/dev/null
ok $((1 - ($? != 0))) 'a build without a result is a failure'

# In a process group of its own.
set -m
(build_once "$target" slow 30 never) 2>/dev/null & pid=$!
set +m
for _ in $(seq 100); do [ -e "$sandbox/started" ] && break; sleep 0.05; done
# The lock is held by the whole family, so all of it is killed.
kill -KILL -- -$pid
wait $pid 2>/dev/null
[ ! -e "$target" ]; ok $? 'a killed run leaves nothing under the name'
(build_once "$target" slow 0 after) 2>/dev/null
[ "$(cat "$target" 2>/dev/null)" = after ]; ok $? 'the next run makes it'
! ls "$sandbox/a folder"/*.tmp.* >/dev/null 2>&1; ok $? 'and removes what the killed run left'
(build_once "$target" slow 0 other)
[ "$(cat "$target")" = after ]; ok $? 'what is there is not made again'

rm -f "$target" "$sandbox/log"
(build_once "$target" slow 0.5 first) 2>/dev/null & (build_once "$target" slow 0.5 second) 2>/dev/null &
wait
[ "$(wc -l <"$sandbox/log")" = 1 ]; ok $? 'two runs at once make it once'

touch "$SPINDLE_CACHE/image-1" "$SPINDLE_CACHE/image-2"
drop_stale "$SPINDLE_CACHE/image" "$SPINDLE_CACHE/image-2"
[ ! -e "$SPINDLE_CACHE/image-1" ] && [ -e "$SPINDLE_CACHE/image-2" ]; ok $? 'older contents are removed, the current stays'

echo "1..$count"
exit $failed
