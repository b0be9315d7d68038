# Debian packages fetched and unpacked outside the system, through apt with a state folder of its own, so
# neither the host's sources, architectures nor installed packages change.  Sourced after common.sh.

# The address of the Debian archive that this machine itself uses.
debian_mirror() {
    local uri
    uri=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
        sed -n 's/^Debian|Debian|main|//p' | grep -v '^cdrom:' | head -n 1)
    # Before the first `apt-get update` there is no Release file to tell the origin.
    [ -n "$uri" ] || uri=$(apt-get indextargets --format '$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
        sed -n 's/^main|//p' | grep -E '/debian/?$' | head -n 1)
    [ -n "$uri" ] || die "apt has no Debian archive configured (see 'apt-get indextargets')"
    printf '%s\n' "$uri"
}

debian_codename() { (. /etc/os-release && printf '%s\n' "$VERSION_CODENAME"); }

# apt_private_setup DIR ARCH SUITE...: an apt state in DIR with the host's mirror, proxies and logins.
apt_private_setup() {
    local dir=$1 arch=$2 mirror suite
    shift 2
    mirror=$(debian_mirror)
    mkdir -p "$dir"/etc/apt/{apt.conf.d,preferences.d,sources.list.d,trusted.gpg.d} \
        "$dir"/var/lib/{apt/lists/partial,dpkg} "$dir"/var/cache/apt/archives/partial
    : >"$dir/var/lib/dpkg/status"
    apt-config dump | grep -E '^Acquire::(http|https|ftp|Retries|ForceIPv)' >"$dir/etc/apt/apt.conf.d/00host" || true
    [ ! -e /etc/apt/auth.conf.d ] || ln -s /etc/apt/auth.conf.d "$dir/etc/apt/auth.conf.d"
    for suite; do
        printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$mirror" "$suite"
    done >"$dir/etc/apt/sources.list"
    cat >"$dir/apt.conf" <<EOF
Dir "$dir/";
Dir::State::status "$dir/var/lib/dpkg/status";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "3";
EOF
    apt_private "$dir" update
}

# apt_private DIR ARG...: apt-get on the private state; its long output is shown only when it fails.
apt_private() {
    local dir=$1
    shift
    if ! APT_CONFIG=$dir/apt.conf apt-get -q -y "$@" >"$dir/log" 2>&1; then
        cat "$dir/log" >&2
        die "apt-get $* failed"
    fi
}

# apt_fetch DIR PACKAGE[/SUITE]...: download the packages with all they depend on.
apt_fetch() {
    local dir=$1
    shift
    apt_private "$dir" install --download-only "$@"
}

# apt_fetch_only DIR PACKAGE...: download just these packages.
apt_fetch_only() {
    local dir=$1
    shift
    (cd "$dir/var/cache/apt/archives" && apt_private "$dir" download "$@")
}

# apt_unpack DIR ROOT: unpack everything downloaded into ROOT, then forget the downloads.
apt_unpack() {
    local dir=$1 root=$2 deb
    mkdir -p "$root"
    for deb in "$dir"/var/cache/apt/archives/*.deb; do
        # Explicit, since `set -e` is off while a caller tests the result.
        (set -o pipefail
            dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --no-same-owner --keep-directory-symlink) ||
            die "could not unpack ${deb##*/} in $root"
        rm -f -- "$deb"
    done
}

# apt_dependency DIR PACKAGE PATTERN: the first package that PACKAGE depends on and whose name matches.
apt_dependency() {
    APT_CONFIG=$1/apt.conf apt-cache depends "$2" | sed -n 's/^ *Depends: //p' | grep -m 1 -E "$3"
}

# apt_pretend DIR PACKAGE...: as if the packages were installed, so that they are not fetched for others that depend on them.
apt_pretend() {
    local dir=$1 name
    shift
    for name; do
        printf 'Package: %s\nStatus: install ok installed\nArchitecture: amd64\nVersion: 999:1\nMaintainer: none\nDescription: none\n\n' "$name"
    done >>"$dir/var/lib/dpkg/status"
}

# wrap_program OUT TARGET PROGRAM [WORDS [LINE]]: OUT/bin/NAME, which runs PROGRAM (a path inside OUT/root) on the libraries
# unpacked beside it, for any user, from any folder, once OUT has become TARGET.  WORDS come before the arguments, LINE before
# it all; both are shell text.
wrap_program() {
    local out=$1 root=$2/root program=$3 words=${4-} line=${5-} loader libs lib
    loader=$(cd "$out/root" && find usr/lib* lib* -name 'ld-linux-x86-64.so.2' 2>/dev/null | head -n 1)
    libs=$root/usr/lib/x86_64-linux-gnu
    for lib in pulseaudio nss blas lapack ceph; do
        [ ! -d "$out/root/usr/lib/x86_64-linux-gnu/$lib" ] || libs=$libs:$root/usr/lib/x86_64-linux-gnu/$lib
    done
    [ ! -d "$out/root/lib/x86_64-linux-gnu" ] || [ -L "$out/root/lib" ] || libs=$libs:$root/lib/x86_64-linux-gnu
    mkdir -p "$out/bin"
    cat >"$out/bin/${program##*/}" <<EOF
#!/bin/sh
${line:+$line
}exec '$root/$loader' --argv0 "\$0" --library-path '$libs' '$root/$program'$words "\$@"
EOF
    chmod 755 "$out/bin/${program##*/}"
}
