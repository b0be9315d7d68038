#!/bin/bash
# Boot an operating system from a CD that Spindle serves.
#
#   ./boot [ISO | URL | /dev/DRIVE] [-- OPTION...]
#
# Without an argument: makes a small Debian live CD from Debian's packages and boots it to a shell on this terminal.
# ISO, URL, /dev/DRIVE: boots from this file, address or host drive instead.  What stands after `--` are more
# options for the emulator (QEMU's), such as `-m 4G`, `-vnc :1`, or `-display curses` for a CD that shows only a
# text screen.  Installs what is missing, builds Spindle and fetches the engine on the way.
# End it with Ctrl-A X.
set -eu
root=$(dirname "$(readlink -f "$0")")
. "$root/scripts/lib/common.sh"

iso=
case ${1-} in
-h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '/^set/d'; exit 0 ;;
-- | '') ;;
-*) die "unknown option '$1' (see ./boot --help; options of the emulator stand after '--')" ;;
*) iso=$1; shift ;;
esac
if [ $# -gt 0 ]; then
    [ "$1" = -- ] || die "unexpected '$1' (options of the emulator stand after '--')"
    shift
fi
case $iso in
'' | *://*) ;;
*)
    [ -e "$iso" ] || die "could not open '$iso': No such file or directory"
    [ ! -d "$iso" ] || die "could not open '$iso': it is a folder; give the path of an ISO file"
    iso=$(readlink -f "$iso")
    ;;
esac

# acceleration: QEMU's KVM works only where the processor's own module is there, built in or loaded.
acceleration() {
    if [ ! -e /sys/module/kvm_intel ] && [ ! -e /sys/module/kvm_amd ]; then
        say "boot: emulating the processor (TCG): neither kvm_intel nor kvm_amd is loaded"
        accel='-accel tcg -cpu max,la57=off'
    elif [ ! -r /dev/kvm ] || [ ! -w /dev/kvm ]; then
        say "boot: emulating the processor (TCG): no permission to use /dev/kvm (are you in the group 'kvm'?)"
        accel='-accel tcg -cpu max,la57=off'
    else
        say "boot: using the processor's virtualization (KVM)"
        accel='-accel kvm -cpu host'
    fi
}

"$root/scripts/setup"
"$root/scripts/build"
"$root/scripts/engine" >/dev/null
[ -n "$iso" ] || iso=$("$root/tests/vm/mklive")
acceleration
say "boot: starting from $iso; end with Ctrl-A X"
# shellcheck disable=SC2086
exec "$root/build/spindle" -machine q35 $accel -m 1G -nographic -boot d -nic user,model=virtio-net-pci \
    -cdrom "$iso" "$@"
