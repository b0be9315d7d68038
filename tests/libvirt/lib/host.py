"""A virtualisation host of the tests' own: Debian's libvirtd with its default configuration and Spindle as the emulator.

The test runs itself once more in private mount and process namespaces (`enter`): what libvirt writes (/etc/libvirt,
/var/lib/libvirt, /run/libvirt …) is a copy there, every process ends with the test, and nothing is left on the machine.
Inside, HOME_DIR holds what the user that libvirt gives to QEMU may read:

    /srv/spindle    the build folder        /srv/images   discs and disks (writable)
    /srv/engine     the engine              /srv/bin      qemu-system-x86_64, first in libvirtd's PATH
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm", "lib"))

from guest import accelerator

HOME_DIR = "/srv"
IMAGES = HOME_DIR + "/images"
SPINDLE = HOME_DIR + "/spindle/spindle"
ENGINE = HOME_DIR + "/bin/qemu-system-x86_64"
INSIDE = "SPINDLE_TEST_LIBVIRT"
STATE = ["/etc/libvirt", "/var/lib/libvirt", "/var/cache/libvirt", "/var/log/libvirt"]
URI = "qemu:///system"


class HostError(Exception):
    pass


def enter():
    """Go on in namespaces of the test's own. Returns only there."""
    if os.environ.get(INSIDE):
        return
    if os.geteuid() != 0:
        print("1..0 # SKIP only root can start a libvirtd")
        sys.exit(0)
    env = dict(os.environ, **{INSIDE: "1"})
    # The shell is there to reap: libvirt takes a QEMU for alive as long as its zombie is.
    os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                           "--mount-proc", "--ipc", "sh", "-c", '"$@" & wait $!', "sh", sys.executable] + sys.argv, env)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise HostError("%s: %s" % (shlex.join(command), done.stdout.strip()))
    return done.stdout.strip()


def newer_libvirt():
    """The folder of scripts/libvirt, or None where Debian's archive does not have it or cannot be reached."""
    done = subprocess.run([os.path.join(ROOT, "scripts", "libvirt")], stdout=subprocess.PIPE, text=True)
    return None if done.returncode else done.stdout.strip()


def put_over(newer):
    """The newer libvirt's files in the places where it looks for them, and its configuration instead of the system's."""
    usr = newer + "/root/usr"
    for name in ("share/libvirt", "lib/x86_64-linux-gnu/libvirt"):
        run("mount", "--bind", usr + "/" + name, "/usr/" + name)
    run("mount", "--bind", newer + "/bin/libvirt_iohelper", "/usr/lib/libvirt/libvirt_iohelper")
    run("cp", "-a", newer + "/root/etc/libvirt", "/mnt/etc-libvirt")
    run("mount", "--bind", "/mnt/etc-libvirt", "/etc/libvirt")


def lay_out():
    """The folders of HOME_DIR, and private copies of libvirt's."""
    engine = os.path.dirname(os.path.dirname(run(os.path.join(ROOT, "scripts", "engine"))))
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/mnt")
    for name in ("engine", "spindle"):
        os.mkdir("/mnt/" + name)
    run("mount", "--bind", engine, "/mnt/engine")
    run("mount", "--bind", os.path.join(ROOT, "build"), "/mnt/spindle")
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", HOME_DIR)
    for name in ("engine", "spindle", "images", "bin"):
        os.mkdir(HOME_DIR + "/" + name)
    run("mount", "--move", "/mnt/engine", HOME_DIR + "/engine")
    run("mount", "--move", "/mnt/spindle", HOME_DIR + "/spindle")
    with open(engine + "/bin/qemu-system-x86_64") as f:
        text = f.read().replace(engine, HOME_DIR + "/engine")
    with open(ENGINE, "w") as f:
        f.write(text)
    os.chmod(ENGINE, 0o755)
    for folder in STATE:
        copy = "/mnt/copy" + folder
        if os.path.isdir(folder):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            run("cp", "-a", folder, copy)
            run("mount", "--bind", copy, folder)
    os.makedirs("/run/libvirt", exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run/libvirt")


def hide_kvm():
    """libvirt must not see a /dev/kvm that cannot run guests: it would ask QEMU all about it again and again."""
    for name in ("upper", "work", "new"):
        os.mkdir("/mnt/dev-" + name)
    run("mount", "-t", "overlay", "-o", "lowerdir=/dev,upperdir=/mnt/dev-upper,workdir=/mnt/dev-work", "overlay", "/mnt/dev-new")
    os.unlink("/mnt/dev-new/kvm")
    with open("/proc/self/mounts") as f:
        below = [line.split()[1] for line in f if line.split()[1].startswith("/dev/")]
    for path in below:
        run("mount", "--move", path, "/mnt/dev-new" + path[len("/dev"):])
    run("mount", "--move", "/mnt/dev-new", "/dev")


class Host:
    """libvirtd and virtlogd. as_root: QEMU runs as root instead of the user libvirt-qemu. newer: the folder of a libvirt that
    takes the system's place."""

    def __init__(self, as_root=False, newer=None):
        lay_out()
        if newer:
            put_over(newer)
        self.newer = newer
        self.virsh_program = newer + "/bin/virsh" if newer else "virsh"
        self.daemon_folder = newer + "/bin" if newer else "/usr/sbin"
        self.qemu_user = "root" if as_root else "libvirt-qemu"
        if accelerator() != "kvm" and os.path.exists("/dev/kvm"):
            hide_kvm()
        if as_root:
            with open("/etc/libvirt/qemu.conf", "a") as f:
                f.write('user = "root"\ngroup = "root"\n')
        self.daemons = {}
        self.start_daemon("virtlogd")
        self.start_libvirtd()

    def start_daemon(self, name):
        log = open("/mnt/%s.log" % name, "ab")
        env = dict(os.environ, PATH=HOME_DIR + "/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        env.pop("SPINDLE_QEMU", None)
        self.daemons[name] = subprocess.Popen(["%s/%s" % (self.daemon_folder, name), "--pid-file", "/run/libvirt/%s.pid" % name],
                                              env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def start_libvirtd(self, timeout=60):
        self.start_daemon("libvirtd")
        end = time.monotonic() + timeout
        while self.virsh("list")[0]:
            if time.monotonic() > end or self.daemons["libvirtd"].poll() is not None:
                raise HostError("libvirtd does not answer: " + self.daemon_log())
            time.sleep(0.1)

    def restart_libvirtd(self):
        daemon = self.daemons["libvirtd"]
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(30)
        self.start_libvirtd()

    def daemon_log(self):
        with open("/mnt/libvirtd.log", errors="replace") as f:
            return f.read()[-3000:]

    def virsh(self, *args, timeout=120):
        """(exit status, output of both streams)"""
        done = subprocess.run([self.virsh_program, "-c", URI, "-q"] + list(args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, text=True, timeout=timeout)
        return done.returncode, done.stdout.strip()

    def event(self, domain, kind, cause):
        """What `virsh event` says of the domain's next event of the kind. cause() is called until one comes, as it does not say
        when it begins to listen."""
        process = subprocess.Popen([self.virsh_program, "-c", URI, "event", domain, "--event", kind, "--timeout", "60"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while True:
            cause()
            try:
                return process.communicate(timeout=1)[0]
            except subprocess.TimeoutExpired:
                pass

    def get(self, *args, timeout=120):
        status, text = self.virsh(*args, timeout=timeout)
        if status:
            raise HostError("virsh %s: %s" % (shlex.join(args), text))
        return text

    def give_to_qemu(self, path):
        shutil.chown(path, self.qemu_user, self.qemu_user)
        return path

    def versions(self):
        return "%s, QEMU as %s" % (" ".join(self.get("version", "--daemon").split()), self.qemu_user)

    def domain_log(self, name):
        try:
            with open("/var/log/libvirt/qemu/%s.log" % name, errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def define(self, xml):
        path = "/mnt/domain.xml"
        with open(path, "w") as f:
            f.write(xml)
        return self.virsh("define", path)
