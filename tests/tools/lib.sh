# Shared by the tests of the image tools: TAP, a scratch folder, the engine's tools beside ours. Source it.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$(readlink -f "${SPINDLE_BUILD:-$root/build}/tools")
img=$tools/spindle-img
io=$tools/spindle-io
count=0
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
[ -x "$img" ] || { echo "Bail out! $img is not built"; exit 1; }

# The engine's tools, or nothing where there is no engine to be had.
engine_img=$("$root/scripts/engine" qemu-img 2>/dev/null) || engine_img=
engine_io=$("$root/scripts/engine" qemu-io 2>/dev/null) || engine_io=

# report NAME: passes if the last command succeeded; what is in the file `why` explains a failure.
report() {
    local status=$?
    count=$((count + 1))
    if [ $status -eq 0 ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        [ ! -s why ] || head -n 30 why | sed 's/^/# /'
        failed=1
    fi
    rm -f why
}

skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

# check NAME COMMAND...: passes if the command does.
check() {
    local name=$1
    shift
    "$@" >why 2>&1
    report "$name"
}

# refuses NAME PATTERN COMMAND...: passes if the command fails with status 1 and its stderr matches the glob.
refuses() {
    local name=$1 pattern=$2 status
    shift 2
    "$@" >/dev/null 2>why
    status=$?
    # shellcheck disable=SC2053
    [ $status -eq 1 ] && [[ $(cat why) == $pattern ]]
    report "$name"
}

finish() {
    echo "1..$count"
    exit $failed
}
