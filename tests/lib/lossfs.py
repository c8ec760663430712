"""A directory on tests/torture/lossfs, the file system that forgets what was not fsynced.

    disk = Disk(directory)           mounted at disk.path
    disk.arm(120, "torn", seed)      the power goes before the 120th change from now on
    disk.cut("drop", seed)           ... or now
    disk.replace()                   everything that used it is dead: what was durable is the disk now
    disk.end()
"""
import os
import shutil
import socket
import subprocess

from tap import skip

ANSWER_S = 120
CUTS = ("drop", "keep", "random", "prefix", "torn")


def program():
    return os.path.join(os.environ["PAWL_BUILD"], "tests", "torture", "lossfs")


class Disk:
    def __init__(self, directory, strict=False):
        if not os.path.exists("/dev/fuse"):
            skip("this machine has no /dev/fuse")
        self.path = f"{directory}/mounted"
        self.strict = strict
        self.generation = 0
        self.directory = directory
        self.process = None
        self.control = None
        os.mkdir(self.path)
        os.mkdir(self._image())
        self._mount()

    def _image(self):
        return f"{self.directory}/image{self.generation}"

    def _mount(self):
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(ANSWER_S)
        with theirs:
            self.process = subprocess.Popen(
                [program(), self._image(), self.path, "strict" if self.strict else "journal", str(theirs.fileno()),
                 "-ofsname=lossfs", "-odefault_permissions"], pass_fds=[theirs.fileno()])
        if not self.control.recv(64):
            skip("lossfs cannot be mounted here")

    def _unmount(self):
        self.control.close()
        try:
            self.process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            subprocess.run(["umount", "-l", self.path], check=False)
            self.process.wait()

    def tell(self, command):
        """A command of tests/torture/lossfs/control.c."""
        self.control.send(command.encode())
        answer = self.control.recv(4096).decode()
        assert answer.startswith("ok"), (command, answer)
        return answer

    def counters(self):
        return dict(pair.split("=") for pair in self.tell("show").split()[1:])

    def is_cut(self):
        return self.counters()["cut"] == "1"

    def arm(self, change, mode, seed):
        self.tell(f"cut-at {change} {mode} {seed}")

    def cut(self, mode, seed):
        if not self.is_cut():
            self.tell(f"cut {mode} {seed}")

    def replace(self):
        before = self._image()
        self.generation += 1
        os.mkdir(self._image())
        self.tell(f"save {self._image()}")
        self._unmount()
        shutil.rmtree(before)
        self._mount()

    def end(self):
        self._unmount()
        if not os.environ.get("PAWL_KEEP"):
            shutil.rmtree(self._image(), ignore_errors=True)
