#!/bin/bash
# Form of the files in git: C as clang-format lays it out, scripts executable, no tabs or trailing space.
cd "$(dirname "$0")/../.." || exit 1
# The last part of a pipe counts in this shell.
shopt -s lastpipe
count=0
failed=0

# result NAME: a pass if standard input is empty, else a failure with it as the reason.
result() {
    local why
    why=$(cat)
    count=$((count + 1))
    if [ -z "$why" ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        printf '%s\n' "$why" | head -n 40 | sed 's/^/# /'
        failed=1
    fi
}

# Other versions lay the same rules out differently; this is Debian 12's.
wanted=14
formatter=$(command -v clang-format-$wanted || command -v clang-format)
mapfile -t sources < <(git ls-files -co --exclude-standard '*.c' '*.h')
if ! "$formatter" --version 2>/dev/null | grep -q "version $wanted\."; then
    count=$((count + 1))
    echo "ok $count - layout of the C files # SKIP no clang-format $wanted here"
elif [ ${#sources[@]} -gt 0 ]; then
    "$formatter" --dry-run -Werror "${sources[@]}" 2>&1 | sed -n 's/^\([^ :]*\):\([0-9]*\):.*error.*/\1:\2: run clang-format -i/p' |
        result 'layout of the C files'
fi

git ls-files -co --exclude-standard | while read -r f; do
    [ -f "$f" ] || continue
    first=
    { IFS= LC_ALL=C read -r -n 2 first <"$f"; } 2>/dev/null
    case $f in tests/vm/guest/* | tests/vm/live/*) continue ;; esac
    if [ "$first" = '#!' ] && [ ! -x "$f" ]; then echo "$f: has an interpreter line but is not executable"; fi
    if [ "$first" != '#!' ] && [ -x "$f" ]; then echo "$f: is executable but has no interpreter line"; fi
done | result 'executable bits'

git ls-files -co --exclude-standard '*.c' '*.h' '*.py' '*.sh' '*.t' '*.rst' '*.build' '*.def' scripts boot check bench |
    xargs -d '\n' grep -nP '\s+$|\t' 2>/dev/null | result 'no tabs, no trailing space'

pythons=()
git ls-files -co --exclude-standard 'scripts/*' 'tests/*' boot check bench .ci/run | {
    while read -r f; do
        [ -f "$f" ] || continue
        first=
        { IFS= LC_ALL=C read -r first <"$f"; } 2>/dev/null
        case $first in
        '#!'*bash) bash -n "$f" 2>&1 ;;
        '#!'*/sh) sh -n "$f" 2>&1 ;;
        '#!'*python3) pythons+=("$f") ;;
        esac
    done
    python3 -c '
import ast, sys
for name in sys.argv[1:]:
    try:
        ast.parse(open(name).read(), name)
    except SyntaxError as error:
        print("%s: %s" % (name, error))' "${pythons[@]}" 2>&1
} | result 'scripts parse'

# Names of files in the documents and in the comments: a path from the root, or a name that some file has.
{
    git ls-files -co --exclude-standard '*.rst' | xargs -d '\n' grep -sH ''
    git ls-files -co --exclude-standard '*.c' '*.h' '*.build' | xargs -d '\n' grep -sHE '^ *(/\*|\*|#) '
} | awk '
    NR == FNR { known[$0] = 1; sub(/.*\//, ""); known[$0] = 1; next }
    {
        file = substr($0, 1, index($0, ":") - 1)
        text = " " substr($0, index($0, ":") + 1) " "
        while (match(text, /[^.\/A-Za-z0-9_-][a-z][A-Za-z0-9_\/-]*\.(c|t|py|sh|def)[^A-Za-z0-9_]/)) {
            name = substr(text, RSTART + 1, RLENGTH - 2)
            if (!(name in known) && !seen[file, name]++)
                print file " names " name
            text = substr(text, RSTART + RLENGTH - 1)
        }
    }' <(git ls-files -co --exclude-standard) - | result 'files named in documents and comments are there'

# The README leads to every page, and gives a reason for every library that the programs cannot do without.
{
    git ls-files -co --exclude-standard 'docs/*.rst' | while read -r f; do
        grep -qF "<$f>" README.rst || echo "README.rst does not lead to $f"
    done
    git ls-files -co --exclude-standard 'meson.build' '*/meson.build' | grep -v '^tests/' | xargs cat |
        grep -oE "dependency\('[^']+'[^)]*\)" | grep -v 'required: false' | sed -E "s/^dependency\('([a-z-]*[a-z]).*/\1/" | sort -u |
        while read -r library; do
            case $library in threads) continue ;; gio-unix | glib) library='GLib 2' ;; esac
            grep -q "^$library  " README.rst || echo "README.rst does not list $library"
        done
    sed -n "/<<'EOF'/,/^EOF/p" scripts/setup | sed '1d;$d' | awk 'NF < 2 { print "scripts/setup gives no reason for " $1 }'
    sed -n "/<<'EOF'/,/^EOF/p" scripts/setup | sed '1d;$d' | LC_ALL=C sort -c 2>&1 | sed 's/^/scripts\/setup: /'
} | result 'the README leads to every page and names every library; scripts/setup is sorted and gives reasons'

echo "1..$count"
exit $failed
