#!/usr/bin/env python3
"""Images of a Ceph cluster: one monitor and one OSD in memory, started here; QEMU's own driver reads what ours wrote."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib")]
import servers
from servers import BUILD, IMG, IO, Server, file_sum, free_port, io, listening, run
from guest import engine
from tap import Tap

MIB = 1 << 20
folder = tempfile.mkdtemp(prefix="spindle-ceph-")
SOURCE = os.path.join(folder, "source")
CONF = os.path.join(folder, "ceph.conf")
with open(SOURCE, "wb") as f:
    f.write(random.Random(31).randbytes(6 * MIB) + bytes(2 * MIB))
SUM = file_sum(SOURCE)

CONFIG = """[global]
fsid = {fsid}
mon_host = v1:127.0.0.1:{port}
mon_initial_members = a
public_addr = 127.0.0.1
ms_bind_ipv6 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_crush_chooseleaf_type = 0
osd_crush_update_on_start = false
osd_class_update_on_start = false
run_dir = {folder}
admin_socket = {folder}/$name.asok
log_file = {folder}/$name.log
pid_file = {folder}/$name.pid
keyring = {folder}/keyring
mon_data = {folder}/mon
osd_data = {folder}/osd
osd_objectstore = memstore
memstore_device_bytes = 268435456
"""


class Failed(Exception):
    pass


def must(*command, timeout=30):
    try:
        status, text, errors = run(*command, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed("%s: no answer for %d s" % (" ".join(command[:3]), timeout)) from None
    if status:
        raise Failed("%s: %s" % (" ".join(command[:3]), (text + errors).strip()[-300:]))
    return text


def ceph(*args):
    # By Debian's own interpreter, whose modules it needs.
    return must("/usr/bin/python3", shutil.which("ceph"), "-c", CONF, *args)


def start_cluster():
    """Monitor and OSD; raises Failed with what does not work."""
    port, fsid = free_port(), str(uuid.uuid4())
    with open(CONF, "w") as f:
        f.write(CONFIG.format(fsid=fsid, port=port, folder=folder))
    for name in ("mon", "osd"):
        os.mkdir(os.path.join(folder, name))
    open(os.path.join(folder, "keyring"), "w").close()
    must("monmaptool", "--create", "--fsid", fsid, "--addv", "a", "[v1:127.0.0.1:%d]" % port, folder + "/monmap")
    must("ceph-mon", "-c", CONF, "-i", "a", "--mkfs", "--monmap", folder + "/monmap", "--keyring", folder + "/keyring")
    Server("ceph-mon", "-c", CONF, "-i", "a", "-f", ready=listening(port))
    osd_id = str(uuid.uuid4())
    ceph("osd", "new", osd_id)
    must("ceph-osd", "-c", CONF, "-i", "0", "--mkfs", "--osd-uuid", osd_id)
    ceph("osd", "crush", "add-bucket", "here", "host")
    ceph("osd", "crush", "move", "here", "root=default")
    ceph("osd", "crush", "add", "osd.0", "1.0", "host=here")
    osd = Server("ceph-osd", "-c", CONF, "-i", "0", "-f", ready=lambda: "1 up" in ceph("osd", "stat"))
    ceph("osd", "pool", "create", "rbd", "8")
    must("rbd", "-c", CONF, "create", "-s", "8M", "rbd/image")
    return port, osd


def test_all(tap, port, osd):
    name = "rbd:rbd/image:conf=" + CONF
    options = "driver=rbd,pool=rbd,image=image,conf=" + CONF
    status, text, errors = run(IMG, "convert", "-n", "-O", "raw", SOURCE, name)
    tap.ok(status == 0, "convert to an image of the cluster", text, errors)
    got, why = servers.copy(os.path.join(folder, "out"), name)
    tap.ok(got == SUM, "and back: all of it", why)
    status, text, errors = run(engine("qemu-img"), "convert", "-O", "raw", name, os.path.join(folder, "peer"))
    if "Unknown" in errors or "module" in errors:
        tap.skip("QEMU's driver reads the same", errors.strip()[-200:])
    else:
        tap.ok(status == 0 and file_sum(os.path.join(folder, "peer")) == SUM, "QEMU's driver reads the same", errors)
    text = io("--image-opts", options + ",discard=unmap", script=("write -P 7 4096 70000", "write -f -P 8 0 512", "write -z -u 1M 1M",
                                                                  "discard 2M 1M", "flush", "read -P 7 4096 70000", "read -P 8 0 512",
                                                                  "read -P 0 1M 2M"))
    tap.ok("rror" not in text and "erification" not in text and "exit" not in text, "writes, zeroes, discards, flush, read back", text)
    monitors = "driver=rbd,pool=rbd,image=image,server.0.host=127.0.0.1,server.0.port=%d,auth-client-required.0=none" % port
    text = io("-r", "--image-opts", monitors, script=("read -P 7 4096 70000",))
    tap.ok("read 70000/70000" in text and "exit" not in text, "by the monitor's address, without a configuration", text)
    must("rbd", "-c", CONF, "snap", "create", "rbd/image@then")
    io("--image-opts", options, script=("write -P 9 4096 4096",))
    text = io("-r", "rbd:rbd/image@then:conf=" + CONF, script=("read -P 7 4096 4096",))
    tap.ok("exit" not in text, "a snapshot is what it was", text)
    text = io("rbd:rbd/image@then:conf=" + CONF, script=("write 0 4k",))
    tap.ok("may not be written" in text, "a snapshot is not written to", text)
    for title, image, message in (("no such image", "rbd:rbd/none:conf=" + CONF, "error reading header from none"),
                                  ("no such pool", "rbd:none/image:conf=" + CONF, "error opening pool none"),
                                  ("no configuration", "rbd:rbd/image:conf=/nonexistent", "error reading conf file /nonexistent"),
                                  ("an unknown setting", "rbd:rbd/image:conf=%s:nonsense=1" % CONF, "invalid conf option nonsense"),
                                  ("half a name", "rbd:rbd", "has to be rbd:POOL/IMAGE"),
                                  ("a setting without value", "rbd:rbd/image:x", "conf option x has no value")):
        text = io("-r", image, script=("read 0 4k",))
        tap.ok(message in text and "exit" in text, "refused: " + title, text)
    hangs(tap, options, osd)


def hangs(tap, options, osd):
    process = subprocess.Popen([IO, "-r", "-c", "read 0 4k", "-c", "sleep 1200", "-c", "read 6M 8k", "--image-opts",
                                options + ",readahead=0,deadline=2,timeout=1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(0.8)
    osd.process.send_signal(signal.SIGSTOP)
    start = time.monotonic()
    text, _ = process.communicate(timeout=30)
    took = time.monotonic() - start
    osd.process.send_signal(signal.SIGCONT)
    tap.ok("timed out" in text and took < 8, "a cluster that hangs: a read ends at the deadline", text, "%.1f s" % took)


def main(tap):
    if not os.path.exists(os.path.join(BUILD, "block", "spindle-rbd.so")):
        tap.skip("driver rbd", "built without librbd")
        return
    for program in ("ceph-mon", "ceph-osd", "monmaptool", "ceph", "rbd"):
        if not shutil.which(program):
            tap.skip("driver rbd", "no %s here" % program)
            return
    try:
        port, osd = start_cluster()
    except Failed as why:
        tap.skip("driver rbd", "a cluster of one node does not start here: %s" % str(why).replace("\n", " "))
        return
    test_all(tap, port, osd)


with Tap() as tap:
    try:
        main(tap)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
