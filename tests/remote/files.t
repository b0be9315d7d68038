#!/usr/bin/env python3
"""Images by SSH, NFS and iSCSI: real servers from Debian, read whole, written to, killed in the middle, refused."""

import base64
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib")]
import servers
from servers import BUILD, IMG, IO, Server, file_sum, free_port, io, listening, run
from tap import Tap

MIB = 1 << 20
folder = tempfile.mkdtemp(prefix="spindle files ")
os.chmod(folder, 0o755)
CONTENT = random.Random(21).randbytes(9 * MIB + 512 * 7)
SUM = hashlib.sha256(CONTENT).hexdigest()


def fresh(name, content=CONTENT):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content)
    return path


def wanted(module, program, tap):
    """Whether the driver was built and its server is installed; else says why not."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin")
    if not os.path.exists(os.path.join(BUILD, "block", "spindle-%s.so" % module)):
        tap.skip("driver " + module, "built without its library")
    elif not path:
        tap.skip("driver " + module, "no %s here" % program)
    else:
        return path
    return None


class Sshd(Server):
    def __init__(self, program):
        self.port = free_port()
        self.key = os.path.join(folder, "user key")
        self.host_key = os.path.join(folder, "host_key")
        for path in (self.key, self.host_key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        shutil.copy(self.key + ".pub", os.path.join(folder, "authorized_keys"))
        os.makedirs("/run/sshd", exist_ok=True)
        conf = os.path.join(folder, "sshd_config")
        with open(conf, "w") as f:
            f.write('Port %d\nListenAddress 127.0.0.1\nHostKey "%s"\nAuthorizedKeysFile "%s/authorized_keys"\nStrictModes no\n'
                    'UsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nSubsystem sftp internal-sftp\nPidFile none\n' %
                    (self.port, self.host_key, folder))
        super().__init__(program, "-D", "-e", "-f", conf, ready=listening(self.port))

    def stop(self):
        """The server and those who serve one client each."""
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], stdout=subprocess.PIPE, text=True).stdout
        for pid in children.split():
            grand = subprocess.run(["ps", "-o", "pid=", "--ppid", pid], stdout=subprocess.PIPE, text=True).stdout.split()
            for one in [pid] + grand:
                try:
                    os.kill(int(one), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        super().stop()

    def fingerprint(self):
        with open(self.host_key + ".pub") as f:
            import base64
            return hashlib.sha256(base64.b64decode(f.read().split()[1])).hexdigest()


def read_all(tap, kind, options):
    got, why = servers.copy(os.path.join(folder, "out"), "--image-opts", options + ",read-only=on")
    tap.ok(got == SUM, kind + ": all of it", why)


def read_and_write(tap, kind, options, path):
    """What every driver can: `options` name the image that lies in `path` on the server."""
    read_all(tap, kind, options)
    text = io("--image-opts", options, script=("write -P 0x41 4096 70000", "read -P 0x41 4096 70000", "flush", "write -z 1M 64k",
                                               "read -P 0 1M 64k", "discard 2M 64k"))
    tap.ok("rror" not in text and "erification" not in text and "exit" not in text, kind + ": written and read back", text)
    with open(path, "rb") as f:
        f.seek(4096)
        tap.ok(f.read(70000) == b"A" * 70000, kind + ": it is in the server's file")
    with open(path, "r+b") as f:
        f.write(CONTENT)


def away_in_the_middle(tap, kind, options, server):
    """A server that dies under a reader and comes back."""
    process = subprocess.Popen([IO, "-r", "-c", "read 0 4k", "-c", "sleep 1500", "-c", "read %d 8k" % (6 * MIB), "--image-opts",
                                options + ",read-only=on,readahead=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(0.8)
    server.stop()
    time.sleep(1.2)
    server.start()
    text, _ = process.communicate(timeout=60)
    tap.ok("read 8192/8192" in text, kind + ": the server died and came back", text)
    process = subprocess.Popen([IO, "-r", "-c", "read 0 4k", "-c", "sleep 1200", "-c", "read %d 8k" % (6 * MIB), "--image-opts",
                                options + ",read-only=on,readahead=0,deadline=2,timeout=1"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    time.sleep(0.8)
    server.process.send_signal(signal.SIGSTOP)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(server.process.pid)], stdout=subprocess.PIPE, text=True).stdout.split()
    for pid in children:
        os.kill(int(pid), signal.SIGSTOP)
    start = time.monotonic()
    text, _ = process.communicate(timeout=30)
    took = time.monotonic() - start
    for pid in children + [server.process.pid]:
        os.kill(int(pid), signal.SIGCONT)
    tap.ok("timed out" in text and took < 8, kind + ": a server that hangs: a read ends at the deadline", text, "%.1f s" % took)


def test_ssh(tap):
    program = wanted("ssh", "sshd", tap)
    if not program:
        return
    server = Sshd(program)
    path = fresh("ssh disc.iso")
    options = "driver=ssh,server.host=127.0.0.1,server.port=%d,path=%s,identity=%s" % (server.port, path, server.key)
    good = options + ",host-key-check.mode=hash,host-key-check.type=sha256,host-key-check.hash=" + server.fingerprint()
    read_and_write(tap, "ssh", good, path)
    away_in_the_middle(tap, "ssh", good, server)
    known = os.path.join(folder, "known_hosts")
    with open(server.host_key + ".pub") as key, open(known, "w") as f:
        f.write("[127.0.0.1]:%d %s" % (server.port, key.read()))
    text = io("-r", "--image-opts", options + ",known-hosts=" + known, script=("read 0 4k",))
    tap.ok("read 4096/4096" in text, "ssh: a host that is known", text)
    text = io("-r", "--image-opts", options + ",host_key_check=no", script=("read 0 4k",))
    tap.ok("read 4096/4096" in text, "ssh: a host that is taken on trust, in the older form", text)
    for name, changed, message in (
            ("a host that is not known", options + ",known-hosts=/dev/null", "no host key was found in known_hosts"),
            ("another key than expected", options + ",host_key_check=sha256:" + "ab" * 32, "does not match host_key_check"),
            ("no such file", good.replace("disc.iso", "none.iso"), "No such file or directory"),
            ("a user without a key", good.replace(server.key, "/nonexistent"), "failed to authenticate"),
            ("nobody there", good.replace("server.port=%d" % server.port, "server.port=1"), "Failed to connect to '127.0.0.1:1'"),
            ("no path", "driver=ssh,server.host=localhost", "No path was specified"),
            ("no host", "driver=ssh,path=/x", "No hostname was specified"),
            ("an unknown check", options + ",host_key_check=perhaps", "unknown host_key_check setting (perhaps)")):
        text = io("-r", "--image-opts", changed, script=("read 0 4k",))
        tap.ok(message in text and "exit" in text, "ssh: refused: " + name, text)
    text = io("-r", "ssh://127.0.0.1:%d%s?host_key_check=no" % (server.port, path.replace(" ", "%20")), script=("read 0 4k",))
    tap.ok("failed to authenticate" in text or "read 4096/4096" in text, "ssh: a URL leads to the same server", text)
    server.stop()


def test_iscsi(tap):
    program = wanted("iscsi", "tgtd", tap)
    if not program:
        return
    port, control = free_port(), random.randrange(100, 30000)
    path = fresh("unit.img")
    os.makedirs("/var/run/tgtd", exist_ok=True)

    class Tgt(Server):
        def start(self):
            super().start()
            admin = ["tgtadm", "-C", str(control), "--lld", "iscsi"]
            for args in (["--op", "new", "--mode", "target", "--tid", "1", "-T", "iqn.2020-01.org.x:t"],
                         ["--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", path],
                         ["--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"]):
                for _ in range(50):
                    if subprocess.run(admin + args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                        break
                    time.sleep(0.1)
    server = Tgt(program, "-f", "-C", str(control), "--iscsi", "portal=127.0.0.1:%d" % port, ready=listening(port))
    options = "driver=iscsi,transport=tcp,portal=127.0.0.1:%d,target=iqn.2020-01.org.x:t,lun=1" % port
    read_and_write(tap, "iscsi", options, path)
    away_in_the_middle(tap, "iscsi", options, server)
    text = io("-r", "iscsi://127.0.0.1:%d/iqn.2020-01.org.x:t/1" % port, script=("read 1000 5000",))
    tap.ok("read 5000/5000" in text, "iscsi: a URL, and a read between blocks", text)
    for name, changed, message in (("no such unit", options.replace("lun=1", "lun=7"), "LUN 7"),
                                   ("no such target", options.replace(":t,", ":u,"), "Failed to connect"),
                                   ("no target", "driver=iscsi,portal=x,transport=tcp", "Need all of transport, portal and target"),
                                   ("iser", options.replace("=tcp", "=iser"), "'transport'"),
                                   ("a user without a secret", options + ",user=me", "needs 'password-secret'")):
        text = io("-r", "--image-opts", changed, script=("read 0 4k",))
        tap.ok(message in text and "exit" in text, "iscsi: refused: " + name, text)
    text = io("-r", "iscsi://me%secret@127.0.0.1/t/1", script=("read 0 4k",))
    tap.ok("would be seen by others" in text, "iscsi: refused: a password in a URL", text)
    server.stop()


def test_nfs(tap):
    program = wanted("nfs", "ganesha.nfsd", tap)
    if not program:
        return
    if os.getuid() != 0:
        tap.skip("driver nfs", "the server has to be started by root")
        return
    port = free_port()
    path = fresh("share/disc 1.iso")
    # NFS 3 needs a port mapper, which has a port of its own.
    mapper = own = None
    if listening(111)():
        mapper = True
    elif shutil.which("rpcbind", path="/usr/sbin:/sbin"):
        own = Server("/usr/sbin/rpcbind", "-f", ready=listening(111))
        mapper = listening(111)()
    conf = os.path.join(folder, "ganesha.conf")
    with open(conf, "w") as f:
        f.write('NFS_CORE_PARAM { NFS_Port = %d; Bind_addr = 127.0.0.1; Protocols = %s; Enable_NLM = false; '
                'Enable_RQUOTA = false; Enable_UDP = false; }\n'
                'NFSv4 { Graceless = true; Lease_Lifetime = 5; Grace_Period = 5; RecoveryRoot = "%s/recovery"; }\n'
                'EXPORT { Export_Id = 1; Path = "%s/share"; Pseudo = /share; Access_Type = RW; Squash = No_Root_Squash; '
                'SecType = sys; Transports = TCP; FSAL { Name = VFS; } }\n' % (port, "3, 4" if mapper else "4", folder, folder))
    os.mkdir(os.path.join(folder, "recovery"))
    log = os.path.join(folder, "ganesha.log")

    def initialized():
        return os.path.exists(log) and "NFS SERVER INITIALIZED" in open(log, errors="replace").read()
    server = Server(program, "-F", "-f", conf, "-L", log, "-p", os.path.join(folder, "ganesha.pid"), "-N", "EVENT", ready=initialized)
    if not initialized():
        tap.skip("driver nfs", "the server does not start here: " + open(log, errors="replace").read()[-300:].replace("\n", " "))
        server.stop()
        return
    options = "driver=nfs,server.type=inet,server.host=127.0.0.1,server.port=%d,version=4,path=/share/disc 1.iso" % port
    read_all(tap, "nfs 4", options)
    server.ready = listening(port)
    away_in_the_middle(tap, "nfs 4", options, server)
    text = io("--image-opts", options, script=("write 0 4k",))
    tap.ok("cannot write by NFS 4" in text or "wrote 4096/4096" in text, "nfs 4: written, or refused with words", text)
    if mapper:
        read_and_write(tap, "nfs 3", "driver=nfs,server.type=inet,server.host=127.0.0.1,path=" + path, path)
    else:
        tap.skip("nfs 3", "no rpcbind can be started here")
    text = io("-r", "nfs://127.0.0.1:%d/share/disc%%201.iso?version=4" % port, script=("read 1000 5000",))
    tap.ok("read 5000/5000" in text, "nfs: a URL", text)
    for name, changed, message in (("no such file", options.replace("disc 1", "none"), "Failed to open"),
                                   ("nobody there", options.replace(str(port), "1"), "Failed to open 'nfs://127.0.0.1:1/share"),
                                   ("no host", "driver=nfs,path=/x", "NFS server address missing"),
                                   ("no path", "driver=nfs,server.host=localhost", "No path was specified")):
        text = io("-r", "--image-opts", changed, script=("read 0 4k",))
        tap.ok(message in text and "exit" in text, "nfs: refused: " + name, text)
    text = io("-r", "nfs://localhost/x?speed=9", script=("read 0 4k",))
    tap.ok("Unknown NFS parameter name: speed" in text, "nfs: refused: an unknown parameter", text)
    server.stop()
    if own:
        own.stop()


with Tap() as tap:
    try:
        for test in [v for k, v in list(globals().items()) if k.startswith(os.environ.get("ONLY", "test_"))]:
            test(tap)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
