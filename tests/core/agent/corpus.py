"""Processes as they are found on owners' machines, labelled by hand: which of PATTERNS, each alone, is to hit them.

Everything that is not named in `hits` must miss. Nothing here was made by the code under test.
"""

from collections.abc import Sequence
from typing import Any

import attrs

from fivespot.core.agent.process import ProcessFacts

PATTERNS = ("java", "idea", "intellij", "steam", "blender", "python3", "jupyter-notebook-server")
"""The words that an owner writes into `killIfCommands`."""

POD_UID = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
CONTAINER = "f" * 64
SESSION = b"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-idea-4711.scope\n"
SYSTEMD_POD = (
    f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD_UID.replace('-', '_')}.slice/"
    f"cri-containerd-{CONTAINER}.scope\n"
).encode()
CGROUPFS_POD = (
    f"12:pids:/kubepods/besteffort/pod{POD_UID}/{CONTAINER}\n"
    f"4:memory:/kubepods/besteffort/pod{POD_UID}/{CONTAINER}\n"
    "0::/\n"
).encode()
STATIC_POD = f"0::/kubepods.slice/kubepods-pod{'0123456789abcdef' * 2}.slice/cri-containerd-{CONTAINER}.scope\n".encode()
RELATIVE_POD = f"0::/../../pod{POD_UID}/{CONTAINER}\n".encode()
DOCKER = f"0::/system.slice/docker-{CONTAINER}.scope\n".encode()
PODMAN = f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{CONTAINER}.scope/container\n".encode()
JVM = "/usr/lib/jvm/java-17-openjdk-amd64"


def facts(
    comm: str | bytes,
    exe: str | bytes | None,
    argv: Sequence[str | bytes] | str,
    **rest: Any,
) -> ProcessFacts:
    """A process; arguments given as one text are split at blanks."""
    arguments = argv.split() if isinstance(argv, str) else argv
    return ProcessFacts(
        **{
            "pid": 4711,
            "ppid": 4000,
            "cgroup": SESSION,
            "lineage": (4000, 1),
            "started": 99,
            "comm": _bytes(comm),
            "exe": None if exe is None else _bytes(exe),
            "argv": tuple(_bytes(argument) for argument in arguments),
            **rest,
        }
    )


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


@attrs.frozen
class Row:
    label: str
    facts: ProcessFacts
    hits: frozenset[str]


def _row(
    label: str, hits: str, comm: str | bytes, exe: str | None, argv: Sequence[str] | str, **rest: Any
) -> Row:
    return Row(label, facts(comm, exe, argv, **rest), frozenset(hits.split()))


CORPUS = (
    # The owner's programs.
    _row(
        "java and a jar", "java", "java", f"{JVM}/bin/java", "java -Xmx4g -jar /srv/ledger/app.jar --port 1"
    ),
    _row(
        "the IDE by its main class",
        "java idea intellij",
        "java",
        f"{JVM}/bin/java",
        "/usr/bin/java -cp /x/lib/a.jar:/x/lib/b.jar -Xms1g --add-opens java.base/java.lang=ALL-UNNAMED "
        "com.intellij.idea.Main",
    ),
    _row(
        "a jar called idea",
        "java idea",
        "java",
        f"{JVM}/bin/java",
        "java -jar -Dfile.encoding=UTF-8 /opt/tools/idea.jar",
    ),
    _row(
        "a module's main class",
        "java blender",
        "java",
        f"{JVM}/bin/java",
        "java -p mods -m org.blender/org.blender.Main",
    ),
    _row("the start script through sh", "idea", "sh", "/usr/bin/dash", "sh /opt/idea/bin/idea.sh"),
    _row(
        "the start script by itself",
        "idea",
        "idea.sh",
        "/usr/bin/dash",
        "/bin/sh /opt/idea/bin/idea.sh nosplash",
    ),
    _row("bash with options", "idea", "bash", "/usr/bin/bash", "bash -eu -o pipefail --norc /opt/x/idea.sh"),
    _row(
        "the native launcher",
        "idea intellij",
        "idea",
        "/opt/intellij-idea/bin/idea",
        "/opt/intellij-idea/bin/idea /p",
    ),
    _row("a snap of the IDE", "idea intellij", "idea", "/snap/intellij-idea-community/530/bin/idea", "idea"),
    _row("an updated program", "idea", "idea", "/opt/idea/bin/idea (deleted)", "/opt/idea/bin/idea"),
    _row(
        "its file watcher", "idea", "fsnotifier", "/opt/idea-IC/bin/fsnotifier", "/opt/idea-IC/bin/fsnotifier"
    ),
    _row(
        "steam",
        "steam",
        "steam",
        "/home/ann/.local/share/Steam/ubuntu12_32/steam",
        "/x/steam -srt-logger-opened",
    ),
    _row(
        "steam's start script",
        "steam",
        "steam.sh",
        "/usr/bin/bash",
        ["bash", "/home/ann/.local/share/Steam/steam.sh", "-nominimize"],
    ),
    _row(
        "a Windows program under wine, as wine titles it",
        "steam",
        "steam.exe",
        "/usr/lib/wine/wine64-preloader",
        ["C:\\Program Files (x86)\\Steam\\steam.exe", "-silent"],
    ),
    _row(
        "wine that has just started",
        "blender",
        "wine64-preloade",
        "/usr/lib/wine/wine64-preloader",
        ["/usr/lib/wine/wine64-preloader", "/usr/lib/wine/wine64", "C:\\tools\\blender.exe"],
    ),
    _row("blender", "blender", "blender", "/usr/bin/blender", "blender -b scene.blend"),
    _row("blender's module", "python3 blender", "python3", "/usr/bin/python3.11", "python3 -Im blender.app"),
    _row("an executable that may not be read", "blender", "blender", None, "/usr/bin/blender -b scene.blend"),
    _row("a script whose shell may not be read", "idea", "idea.sh", None, "/bin/sh /opt/idea/bin/idea.sh"),
    _row(
        "a Python script",
        "python3 blender",
        "python3",
        "/usr/bin/python3.11",
        "python3 -W error /opt/blender.py",
    ),
    _row("env before its program", "blender", "env", "/usr/bin/env", "env -u LANG A=b /opt/blender/blender"),
    _row(
        "java by the dynamic linker",
        "java idea",
        "ld-linux-x86-64",
        "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        f"/lib64/ld-linux-x86-64.so.2 --library-path /l {JVM}/bin/java -cp a.jar com.idea.Main",
    ),
    _row(
        "a wrapper called java",
        "java idea",
        "java",
        "/usr/bin/bash",
        "bash /home/ann/.jenv/shims/java org.idea.Main",
    ),
    _row("perl", "steam", "perl", "/usr/bin/perl", "perl -w -I lib /opt/steam.pl"),
    _row("perl that edits in place", "steam", "perl", "/usr/bin/perl", "perl -pi.bake /opt/steam.pl"),
    _row(
        "a module, joined to its option",
        "python3 blender",
        "python3",
        "/usr/bin/python3.11",
        "python3 -umblender",
    ),
    _row(
        "joined options of bash that take a value",
        "idea",
        "bash",
        "/usr/bin/bash",
        "bash -oe pipefail /opt/idea.sh",
    ),
    _row("ruby", "steam", "ruby", "/usr/bin/ruby3.1", "ruby -r json -W0 bin/steam.rb"),
    _row("node", "steam", "node", "/usr/bin/node", "node --require ts-node --inspect=0 /srv/steam.js"),
    _row(
        "a long name, whole in the executable",
        "jupyter-notebook-server",
        "jupyter-noteboo",
        "/opt/bin/jupyter-notebook-server",
        "jupyter-notebook-server",
    ),
    _row(
        "a long name, whole in argv[0]",
        "jupyter-notebook-server",
        "jupyter-noteboo",
        "/opt/bin/launcher",
        "/opt/bin/jupyter-notebook-server",
    ),
    _row("a renamed main thread", "steam", "steam", "/opt/game/run", "./run"),
    _row(
        "the owner's docker container",
        "java",
        "java",
        "/opt/java/openjdk/bin/java",
        "java -jar a.jar",
        cgroup=DOCKER,
    ),
    _row("the owner's podman container", "blender", "blender", "/usr/bin/blender", "blender", cgroup=PODMAN),
    _row(
        "a sandboxed desktop program",
        "steam",
        "steam",
        "/app/bin/steam",
        "steam",
        cgroup=b"0::/app-flatpak.scope\n",
    ),
    _row("no cgroups at all", "blender", "blender", "/usr/bin/blender", "blender", cgroup=b""),
    _row("a program stopped at the debugger", "blender", "blender", "/usr/bin/blender", "blender", state="t"),
    # Not the owner's programs.
    _row("grep for java", "", "grep", "/usr/bin/grep", "grep java"),
    _row("an editor", "", "vim", "/usr/bin/vim.basic", "vim java.txt idea.md steam"),
    _row("a commit message", "", "git", "/usr/bin/git", "git commit -m java"),
    _row("the compiler", "", "javac", f"{JVM}/bin/javac", "javac Main.java"),
    _row(
        "the helper that starts a child of java",
        "",
        "jspawnhelper",
        f"{JVM}/lib/jspawnhelper",
        "jspawnhelper 1:2",
    ),
    _row("a pager on a folder of that name", "", "less", "/usr/bin/less", "less /opt/intellij-idea/README"),
    _row("find", "", "find", "/usr/bin/find", "find / -name steam"),
    _row(
        "code on a shell's command line", "", "sh", "/usr/bin/dash", ["sh", "-c", "java -jar /opt/idea.jar"]
    ),
    _row("joined options of a shell", "", "bash", "/usr/bin/bash", ["bash", "-lc", "/opt/blender/blender"]),
    _row("a login shell", "", "bash", "/usr/bin/bash", ["-bash"]),
    _row("sudo, which starts java", "", "sudo", "/usr/bin/sudo", "sudo java -version"),
    _row("timeout, which starts java", "", "timeout", "/usr/bin/timeout", "timeout 5 java -version"),
    _row(
        "Python code that mentions it",
        "python3",
        "python3",
        "/usr/bin/python3.11",
        ["python3", "-c", "steam"],
    ),
    _row("Python on standard input", "python3", "python3", "/usr/bin/python3.11", ["python3", "-", "steam"]),
    _row(
        "a program's argument in Python",
        "python3",
        "python3",
        "/usr/bin/python3.11",
        "python3 /x/run.py steam",
    ),
    _row("perl code", "", "perl", "/usr/bin/perl", ["perl", "-ne", "print if /steam/", "blender"]),
    _row("kubelet", "", "kubelet", "/usr/bin/kubelet", "kubelet --node-labels=java=yes --root-dir=/var/idea"),
    _row("kubectl", "", "kubectl", "/usr/bin/kubectl", "kubectl logs java"),
    _row(
        "a server's title",
        "",
        "postgres",
        "/usr/lib/postgresql/15/bin/postgres",
        ["postgres: java idea idle"],
    ),
    _row("the title of an unreadable server", "", "postgres", None, ["postgres: java idea idle"]),
    _row(
        "a class path",
        "java",
        "java",
        f"{JVM}/bin/java",
        "java -cp /opt/idea/lib/idea.jar:/x/steam org.x.Main",
    ),
    _row(
        "a system property", "java", "java", f"{JVM}/bin/java", "java -Dx=blender @/opt/idea/args org.x.Main"
    ),
    _row("another case", "", "Java", "/opt/Java/bin/Java", "Java"),
    _row("a longer word", "", "ideas", "/opt/ideas/bin/ideas", "ideas"),
    _row("a name that ends in it", "", "jidea", "/opt/jidea", "jidea"),
    _row("a word of other letters", "", "idéa", "/opt/idéas/steamé", "steamé"),
    _row(
        "another long name",
        "",
        "jupyter-noteboo",
        "/opt/bin/jupyter-notebook-other",
        "jupyter-notebook-other",
    ),
    _row("a long name that only argv[0] claims", "", "run", "/opt/run", "jupyter-notebook-server"),
    _row("a kernel thread", "", "kworker/0:1-java", None, (), is_kernel_thread=True, ppid=2),
    _row("a kernel thread called java", "", "java", None, (), is_kernel_thread=True, state="R"),
    _row("a zombie", "", "java", None, (), state="Z"),
    _row("a dead thread group", "", "java", None, (), state="X"),
    _row("a container being started", "", "runc:[2:INIT]", "/usr/bin/runc", "runc init"),
    _row("a container being started, early", "", "java", "/usr/sbin/runc", "/usr/sbin/runc init"),
    _row("a pod, systemd cgroups", "", "java", "/usr/bin/java", "java -jar a.jar", cgroup=SYSTEMD_POD),
    _row("a pod, cgroupfs", "", "java", "/usr/bin/java", "java -jar a.jar", cgroup=CGROUPFS_POD),
    _row("a static pod", "", "java", "/usr/bin/java", "java -jar a.jar", cgroup=STATIC_POD),
    _row("a pod seen from another one", "", "java", "/usr/bin/java", "java -jar a.jar", cgroup=RELATIVE_POD),
)
