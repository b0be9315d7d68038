"""The ways people write a <disk> for a CD, or an IDE/SATA disk: a table of name -> Variant.

Names that a source uses: see Sources in variants.t (one.iso, two.iso, disk.raw, cd.qcow2, luks.img, loop devices, servers)."""

from dataclasses import dataclass

from domain import disk
from host import IMAGES

SECRET = "11111111-2222-3333-4444-555555555555"
RAW = "<driver name='qemu' type='raw'%s/>"
ENCRYPTION = "<encryption format='luks'%%s><secret type='passphrase' uuid='%s'/></encryption>" % SECRET


@dataclass
class Variant:
    disks: list
    machine: str = "q35"
    extra: str = ""


def cd(source="one.iso", **more):
    return disk(IMAGES + "/" + source if source and source[0] not in "/<" and not source.startswith("LOOP-") else source, **more)


def hard(source="disk.raw", target="sda", **more):
    return cd(source, target=target, device="disk", **more)


def driver(words):
    return RAW % (" " + words)


def network(protocol, inner, name="one.iso", attributes="", **more):
    return cd("<source protocol='%s'%s%s>%s</source>" % (protocol, " name='%s'" % name if name else "", attributes, inner),
              kind="network", **more)


def target(words, name="sda", bus="sata"):
    return "<target dev='%s' bus='%s' %s/>" % (name, bus, words)


def luks(source="luks.img", more=""):
    return "<source file='%s/%s'>%s</source>" % (IMAGES, source, ENCRYPTION % more)


def files(table):
    missing = "<source file='/nonexistent.iso' startupPolicy='%s'/>"
    table["file"] = cd()
    table["file-no-readonly"] = cd().replace("<readonly/>", "")
    table["file-no-driver"] = cd(driver="")
    table["file-no-driver-qcow2"] = cd("cd.qcow2", driver="")
    table["file-qcow2"] = cd("cd.qcow2", driver="<driver name='qemu' type='qcow2'/>")
    table["file-is-a-device"] = cd("LOOP-RO")
    table["file-slices"] = cd("<source file='%s/one.iso'><slices><slice type='storage' offset='2048' size='1048576'/></slices>"
                              "</source>" % IMAGES)
    for policy in ("optional", "requisite", "mandatory"):
        table["file-missing-" + policy] = cd(missing % policy)
    table["empty"] = cd("")
    table["empty-no-driver"] = cd("", driver="")
    table["block-ro"] = cd("LOOP-RO", kind="block")
    table["block-rw"] = cd("LOOP-RW", kind="block")
    table["block-optional"] = cd("<source dev='LOOP-RO' startupPolicy='optional'/>", kind="block")
    table["block-missing-optional"] = cd("<source dev='/dev/loop-none' startupPolicy='optional'/>", kind="block")
    table["block-disk"] = hard("LOOP-RW", kind="block")
    table["dir-fat"] = cd("<source dir='%s/folder'/>" % IMAGES, kind="dir", driver="<driver name='qemu' type='fat'/>")
    table["luks-cdrom"] = cd(luks())
    table["luks-cdrom-encryption-outside"] = cd("luks.img", extra=ENCRYPTION % "")
    table["luks-cdrom-engine"] = cd(luks(more=" engine='qemu'"))
    table["luks-disk"] = hard(luks())
    table["luks-qcow2-disk"] = hard(luks("luks.qcow2"), driver="<driver name='qemu' type='qcow2'/>")


def servers(table):
    host = "<host name='127.0.0.1' port='HTTP-PORT'/>"
    nbd = "<host name='127.0.0.1' port='NBD-PORT'/>"
    table["http"] = network("http", host)
    table["http-query"] = network("http", host, attributes=" query='a=1&amp;b=2'")
    table["http-all"] = network("http", host + "<cookies><cookie name='ses'>c00k</cookie></cookies><readahead size='262144'/>"
                                "<timeout seconds='6'/>")
    table["http-slices"] = network("http", host + "<slices><slice type='storage' offset='2048' size='1048576'/></slices>")
    table["http-cache-io"] = network("http", host, driver=driver("cache='none' io='native'"))
    table["https-unverified"] = network("https", "<host name='127.0.0.1' port='HTTPS-PORT'/><ssl verify='no'/>")
    table["https-verified"] = network("https", "<host name='127.0.0.1' port='HTTPS-PORT'/><ssl verify='yes'/>"
                                      "<cookies><cookie name='ses'>c00k</cookie></cookies>")
    table["nbd-tcp"] = network("nbd", nbd, "iso")
    table["nbd-unix"] = network("nbd", "<host transport='unix' socket='%s/nbd.sock'/>" % IMAGES, "iso")
    table["nbd-reconnect"] = network("nbd", nbd + "<reconnect delay='10'/>", "iso")
    table["nbd-tls-no-credentials"] = network("nbd", nbd, "iso", " tls='yes'")


def drivers(table):
    for mode in ("none", "writethrough", "writeback", "directsync", "unsafe"):
        table["cache-" + mode] = cd(driver=driver("cache='%s'" % mode))
    for mode in ("native", "threads", "io_uring"):
        table["cache-none-io-" + mode] = cd(driver=driver("cache='none' io='%s'" % mode))
    table["io-threads"] = cd(driver=driver("io='threads'"))
    table["discard-unmap"] = cd(driver=driver("discard='unmap' detect_zeroes='unmap'"))
    table["discard-ignore"] = cd(driver=driver("discard='ignore' detect_zeroes='on'"))
    table["discard-disk"] = hard(driver=driver("discard='unmap' detect_zeroes='unmap'"))
    table["error-policy"] = cd(driver=driver("error_policy='report' rerror_policy='ignore'"))
    table["error-policy-stop"] = cd(driver=driver("error_policy='stop'"))
    table["error-policy-disk"] = hard(driver=driver("error_policy='enospace' rerror_policy='stop'"))
    table["iotune"] = cd(extra="<iotune><total_bytes_sec>1000000</total_bytes_sec><read_iops_sec>100</read_iops_sec>"
                         "<read_iops_sec_max>200</read_iops_sec_max><read_iops_sec_max_length>3</read_iops_sec_max_length>"
                         "<size_iops_sec>4096</size_iops_sec></iotune>")
    table["iotune-group"] = cd(extra="<iotune><read_bytes_sec>500000</read_bytes_sec><group_name>grp0</group_name></iotune>")
    table["iotune-empty"] = cd("", extra="<iotune><read_bytes_sec>500000</read_bytes_sec></iotune>")


def devices(table):
    table["serial"] = cd(extra="<serial>SER-123 x_y</serial>")
    table["serial-empty"] = cd(extra="<serial></serial>")
    table["serial-long"] = cd(extra="<serial>ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789</serial>")
    table["serial-disk"] = hard(extra="<serial>HDSER</serial>")
    table["rotation-rate-disk"] = hard(target=target("rotation_rate='7200'"))
    table["boot-order"] = cd(extra="<boot order='1'/>")
    table["boot-order-two"] = Variant([cd(extra="<boot order='2'/>"), hard(target="sdb", extra="<boot order='1'/>")])
    table["tray-open"] = cd(target=target("tray='open'"))
    table["tray-open-empty"] = cd("", target=target("tray='open'"))
    table["shareable"] = cd(extra="<shareable/>")
    table["shareable-disk"] = hard(extra="<shareable/>")
    table["blockio"] = cd(extra="<blockio logical_block_size='2048' physical_block_size='2048'/>")
    table["blockio-disk"] = hard(extra="<blockio logical_block_size='512' physical_block_size='4096'/>")
    table["alias"] = cd(extra="<alias name='ua-mycd'/>")
    table["unit-3"] = cd(extra="<address type='drive' controller='0' bus='0' target='0' unit='3'/>")
    table["scsi"] = cd(target=target("", bus="scsi"))
    table["usb"] = Variant([cd(target=target("", bus="usb"))])
    table["virtio-disk-beside"] = Variant([cd(), hard(target=target("", "vda", "virtio"))])
    table["virtio-qcow2-beside"] = Variant([cd(), hard("cd.qcow2", target=target("", "vda", "virtio"),
                                                       driver="<driver name='qemu' type='qcow2'/>")])
    table["two-the-same"] = Variant([cd(), cd(target="sdb")])
    table["six"] = Variant([cd("", target="sd" + c) for c in "abcdef"])
    table["eight"] = Variant([cd("", target="sd" + c) for c in "abcdefgh"])
    table["second-controller"] = Variant(["<controller type='sata' index='1'/>", cd(
        extra="<address type='drive' controller='1' bus='0' target='0' unit='2'/>")])
    qemu = "<qemu:commandline>%s</qemu:commandline>"
    table["qemu-override"] = Variant(
        [cd(extra="<alias name='ua-cd'/>")],
        extra="<qemu:override><qemu:device alias='ua-cd'><qemu:frontend><qemu:property name='model' type='string' "
        "value='MyCD'/><qemu:property name='ver' type='string' value='9.9'/></qemu:frontend></qemu:device></qemu:override>")
    table["qemu-env"] = Variant([cd()], extra=qemu % "<qemu:env name='SOME_OPTION' value='x y'/>")
    table["qemu-unknown-argument"] = Variant([cd()], extra=qemu % "<qemu:arg value='--no-such-option=1'/>")
    table["qemu-drive"] = Variant([cd()], extra=qemu % "".join(
        "<qemu:arg value='%s'/>" % word for word in (
            "-drive", "if=none,id=cdx,media=cdrom,file=%s/two.iso,format=raw,readonly=on" % IMAGES,
            "-device", "ide-cd,bus=ide.3,drive=cdx,id=mycd")))


def old_pc(table):
    def ide(name):
        return target("", name, "ide")
    table["pc-empty"] = Variant([cd("", target=ide("hdc"))], "pc")
    table["pc-serial"] = Variant([cd(target=ide("hdc"), extra="<serial>IDESER</serial>")], "pc")
    table["pc-sata"] = Variant([cd()], "pc")
    table["pc-geometry-disk"] = Variant([hard(target=ide("hda"), extra="<geometry cyls='1000' heads='16' secs='63' "
                                              "trans='lba'/>")], "pc")
    table["pc-two"] = Variant([cd(target=ide("hda")), cd("two.iso", target=ide("hdd"))], "pc")


def all_variants():
    table = {}
    for part in (files, servers, drivers, devices, old_pc):
        part(table)
    return {name: v if isinstance(v, Variant) else Variant([v]) for name, v in table.items()}
