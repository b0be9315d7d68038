# Shell functions shared by the project's scripts; sourced by bash.  Messages go to standard error, so
# that a script's result can be captured from standard output.

say() { printf '%s\n' "$*" >&2; }

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# The folder for everything fetched or built outside git.  Nothing in it is needed to be kept.
cache_dir() {
    local dir=${SPINDLE_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/spindle}
    mkdir -p "$dir" || die "could not make the cache folder '$dir' (set SPINDLE_CACHE to another place)"
    (cd "$dir" && pwd)
}

# content_key FILE... -> short hash of the files' contents, the name under which their product is cached.
content_key() { cat -- "$@" | sha256sum | cut -c1-16; }

# build_once TARGET FUNCTION [ARG...]: make TARGET (a file or folder) unless it is there.  FUNCTION gets a
# fresh folder as its first argument and leaves the result in it as `out`.  The result appears under its
# name only when complete, two runs at once wait for each other, and what an interrupted run left is removed.
build_once() (
    local target=$1 function=$2
    shift 2
    [ ! -e "$target" ] || exit 0
    mkdir -p "${target%/*}"
    exec 9>"$target.lock"
    flock -n 9 || { say "waiting for another run that makes ${target##*/} ..."; flock 9; }
    [ ! -e "$target" ] || exit 0
    rm -rf -- "$target".tmp.*
    work=$(mktemp -d "$target.tmp.XXXXXX")
    chmod 755 "$work"
    trap 'rm -rf -- "$work"' EXIT
    trap 'exit 130' INT TERM HUP
    set -eu
    "$function" "$work" "$@" 9>&-
    [ -e "$work/out" ]
    mv -T -- "$work/out" "$target"
)

# drop_stale PREFIX KEEP: remove cached products named PREFIX-* other than KEEP (older content hashes),
# sparing those that a run is making or using (their lock is held).
drop_stale() {
    local old
    for old in "$1"-*; do
        case $old in "$2" | "$2".* | *.lock | *.tmp.*) continue ;; esac
        [ -e "$old" ] || continue
        ( flock -n 9 && rm -rf -- "$old" "$old.lock" ) 9>"$old.lock"
    done
}

# as_root_hint COMMAND -> how this user would run COMMAND as root.
as_root_hint() {
    if command -v sudo >/dev/null; then printf 'sudo %s' "$*"; else printf "su -c '%s'" "$*"; fi
}
