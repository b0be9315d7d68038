# Shell functions of the image makers: kernels, modules and programs from Debian packages.
# Sourced by bash after scripts/lib/common.sh and scripts/lib/apt.sh.

# Modules of every test guest and of the live CD: buses, discs, file systems, the control channel.
guest_modules='ahci ata_piix sr_mod sd_mod sg isofs udf squashfs overlay loop ext4 vfat crc32c_generic
    nls_iso8859-1 nls_cp437 nls_utf8 virtio_pci virtio_blk virtio_console virtio_scsi virtio_net
    dm-mod dm-crypt usb-storage uas xhci-pci ehci-pci uhci-hcd crct10dif_generic crc64_rocksoft_generic'

# kernel_dir ARCH -> the folder of Debian's kernel for amd64 or i386, unpacked once.
kernel_dir() {
    local arch=$1 target
    target=$(cache_dir)/images/kernel-$arch-$(content_key "$scripts/lib/apt.sh")
    # No `|| ...` here: it would switch `set -e` off inside.
    build_once "$target" make_kernel "$arch"
    [ -d "$target" ] || exit 1
    printf '%s\n' "$target"
}

make_kernel() {
    local work=$1 arch=$2 meta=linux-image-amd64 codename package
    [ "$arch" = amd64 ] || meta=linux-image-686-pae
    codename=$(debian_codename)
    say "images: downloading Debian's $arch kernel ..."
    apt_private_setup "$work/apt" "$arch" "$codename" "$codename-updates"
    package=$(apt_dependency "$work/apt" "$meta" '^linux-image-')
    apt_fetch_only "$work/apt" "$package"
    apt_unpack "$work/apt" "$work/out"
    mv "$work"/out/boot/vmlinuz-* "$work/out/vmlinuz"
    rm -rf "$work"/out/{boot,usr}
    depmod -b "$work/out" "$(ls "$work/out/lib/modules")"
}

# copy_modules KERNEL ROOT NAME...: these modules with all that they need.
copy_modules() {
    local from=$1 root=$2 version name file
    shift 2
    version=$(ls "$from/lib/modules")
    mkdir -p "$root/lib/modules/$version"
    for name; do
        modprobe -d "$from" -S "$version" --show-depends "$name" 2>/dev/null | sed -n 's/^insmod //p' | awk '{ print $1 }'
    done | sort -u | while read -r file; do
        file=${file#"$from"}
        mkdir -p "$root${file%/*}"
        cp -n "$from$file" "$root$file"
    done
    cp "$from/lib/modules/$version"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$version/"
    depmod -b "$root" "$version"
}

# copy_programs TREE ROOT PATH...: programs of an unpacked Debian tree with the libraries that they need.
copy_programs() {
    local tree=$1 root=$2 libs loader path
    shift 2
    libs=$tree/usr/lib/x86_64-linux-gnu:$tree/lib/x86_64-linux-gnu
    loader=$(readlink -f "$tree/lib64/ld-linux-x86-64.so.2")
    mkdir -p "$root"/{lib64,usr/bin,usr/lib/x86_64-linux-gnu}
    cp -L "$loader" "$root/lib64/ld-linux-x86-64.so.2"
    for path; do
        [ -e "$tree$path" ] || die "the packages hold no $path"
        cp -L "$tree$path" "$root/usr/bin/"
        head -c 4 "$tree$path" | grep -q ELF || continue
        "$loader" --library-path "$libs" --list "$tree$path" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p'
    done | sort -u | while read -r path; do cp -L "$path" "$root/usr/lib/x86_64-linux-gnu/"; done
}

# pack_initrd ROOT FILE: an uncompressed initial RAM disk (unpacking costs more than reading under TCG).
pack_initrd() { (cd "$1" && find . -print0 | sort -z | cpio -0 -o -H newc --quiet -R 0:0) >"$2"; }
