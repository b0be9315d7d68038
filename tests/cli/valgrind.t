#!/bin/bash
# The plain device tests under valgrind: no access to memory that is not there or not set, nothing lost.  The
# long ones (random guests, hostile input, resets and moves at every stage) run under the sanitizers only.
cd "$(dirname "$0")/../.." || exit 1
mapfile -t programs < <(find build/tests/qtest -maxdepth 1 -type f -executable -name 'test-*' \
    -not -name 'test-ahci-?*' -not -name 'test-state' -not -name 'test-vfu-cd' | sort)
if [ ${#programs[@]} -eq 0 ]; then
    echo "1..1"
    echo "not ok 1 - there are device tests in build/ (run scripts/build)"
    exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
count=0
failed=0
echo "1..${#programs[@]}"
export G_SLICE=always-malloc
for program in "${programs[@]}"; do
    count=$((count + 1))
    if valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$program" --tap >"$log" 2>&1; then
        echo "ok $count - ${program##*/}"
    else
        failed=1
        echo "not ok $count - ${program##*/}"
        grep -E '^(not ok|==|Bail|\*\*)' "$log" | head -n 60 | sed 's/^/# /'
    fi
done
exit $failed
