"""What a command line runs: the program behind a shell, `python -m`, `java -jar`, wine and their like.

Each interpreter has a grammar, after its own manual page: which options take a value, which carry code instead of a
program, which name the program themselves.
"""

import re

import attrs

DELETED = b" (deleted)"
"""What the kernel adds to the path of an executable whose file has gone."""

SUFFIXES = (b".sh", b".bash", b".py", b".pl", b".rb", b".js", b".jar", b".exe")
"""Endings that are no part of a program's name."""

_SEPARATOR = re.compile(rb"[/\\]")
_VERSION = b"0123456789.-"
_WINE = re.compile(rb"wine(?:64)?(?:-(?:preloader|stable|staging|devel\w*))?")
_LINKER = re.compile(rb"ld-[\w.-]*\.so[\w.]*")


def basename(path: bytes) -> bytes:
    """The last part of a path, Unix or Windows."""
    return _SEPARATOR.split(path)[-1]


def undeleted(path: bytes) -> bytes:
    """An executable's path without the kernel's mark of a deleted file."""
    return path.removesuffix(DELETED)


def bare(name: bytes) -> bytes:
    """A program's name without the ending of its language."""
    return next((name[: -len(end)] for end in SUFFIXES if name.endswith(end) and len(name) > len(end)), name)


@attrs.frozen(kw_only=True)
class Grammar:
    """How one interpreter reads its arguments.

    Attributes:
        values: options followed by a value.
        attached: single letters whose value, if any, is the rest of the argument.
        code: options that carry or announce code; no program is named then.
        names: options whose value is the program.
        clustered: whether single letters may be joined (`-Im module`).
        next_only: whether a value is always the next argument, even inside a cluster (shells).
    """

    values: frozenset[bytes] = frozenset()
    attached: frozenset[bytes] = frozenset()
    code: frozenset[bytes] = frozenset()
    names: frozenset[bytes] = frozenset()
    clustered: bool = True
    next_only: bool = False


def _words(text: str) -> frozenset[bytes]:
    return frozenset(text.encode().split())


_SHELL = Grammar(values=_words("-o -O +o +O --rcfile --init-file"), code=_words("-c -s"), next_only=True)
_SHELLS = _words("sh bash dash ash zsh ksh mksh fish rbash")
_PYTHON = Grammar(values=_words("-W -X --check-hash-based-pycs"), code=_words("-c"), names=_words("-m"))
_JAVA = Grammar(
    values=_words(
        "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules --limit-modules --add-reads "
        "--add-exports --add-opens --patch-module --enable-native-access --source -d --describe-module"
    ),
    names=_words("-m --module"),
    clustered=False,
)
_NODE = Grammar(
    values=_words(
        "-r --require --import -C --conditions --loader --experimental-loader --env-file --title --icu-data-dir "
        "--openssl-config --redirect-warnings --input-type --inspect-port"
    ),
    code=_words("-e --eval -p --print -pe"),
    clustered=False,
)
_LINKING = Grammar(
    values=_words(
        "--library-path --inhibit-rpath --audit --preload --argv0 --glibc-hwcaps-prepend --glibc-hwcaps-mask"
    ),
    clustered=False,
)
_WINE_NAME, _LINKER_NAME, _BUSYBOX, _ENV = b"wine", b"ld.so", b"busybox", b"env"

INTERPRETERS: dict[bytes, Grammar] = {
    **dict.fromkeys(_SHELLS, _SHELL),
    _ENV: Grammar(values=_words("-u -C --unset --chdir"), code=_words("-S --split-string")),
    **dict.fromkeys(_words("python pypy"), _PYTHON),
    b"perl": Grammar(
        values=_words("-I"), attached=_words("-i -l -0 -M -m -F -C -D -x"), code=_words("-e -E")
    ),
    b"ruby": Grammar(
        values=_words("-I -r -C -X -E --encoding --enable --disable"),
        attached=_words("-0 -F -i -K -W -x -T"),
        code=_words("-e"),
    ),
    **dict.fromkeys(_words("node nodejs"), _NODE),
    **dict.fromkeys(_words("java javaw"), _JAVA),
    _LINKER_NAME: _LINKING,
    _WINE_NAME: Grammar(clustered=False),
    _BUSYBOX: Grammar(clustered=False),
}


def interpreter(name: bytes) -> bytes:
    """The name in INTERPRETERS that a program's basename stands for; the basename itself when there is none."""
    if name in INTERPRETERS:
        return name
    if _WINE.fullmatch(name):
        return _WINE_NAME
    if _LINKER.fullmatch(name):
        return _LINKER_NAME
    unversioned = name.rstrip(_VERSION)
    return unversioned if unversioned in INTERPRETERS else name


@attrs.frozen
class Started:
    """What an interpreter was asked to run.

    Attributes:
        operand: a path, a module or a class; None when it reads code from elsewhere.
        argv: the command line as that operand would see it, itself first.
        from_code: whether the code stands on the command line, or comes through a pipe.
    """

    operand: bytes | None
    argv: tuple[bytes, ...] = ()
    from_code: bool = False


_NOTHING = Started(None)
_CODE = Started(None, from_code=True)


def started(name: bytes, argv: tuple[bytes, ...]) -> Started:
    """What `argv`, run by the interpreter `name` of INTERPRETERS, starts."""
    if name == _WINE_NAME:
        return _started_by_wine(argv)
    if name == _BUSYBOX:
        rest = argv[1:] if basename(argv[0] if argv else b"") == _BUSYBOX else argv
        return Started(rest[0], rest) if rest else _NOTHING
    return _read(name, INTERPRETERS[name], argv)


def _started_by_wine(argv: tuple[bytes, ...]) -> Started:
    """Wine rewrites its command line, so that the Windows program may come first or after the loaders."""
    for at, argument in enumerate(argv):
        if not argument.startswith(b"-") and not _WINE.fullmatch(basename(argument)):
            return Started(argument, argv[at:])
    return _NOTHING


def _read(name: bytes, grammar: Grammar, argv: tuple[bytes, ...]) -> Started:
    at, size = 1, len(argv)
    while at < size:
        argument = argv[at]
        is_option = argument[:1] == b"-" or (grammar is _SHELL and argument[:1] == b"+")
        if argument == b"--" or (argument == b"-" and grammar is _SHELL):
            return Started(argv[at + 1], argv[at + 1 :]) if at + 1 < size else _NOTHING
        if argument == b"-" and name != _ENV:
            return _CODE  # standard input
        if not is_option:
            if (name == _ENV and b"=" in argument) or (grammar is _JAVA and argument[:1] == b"@"):
                at += 1
                continue
            return Started(argument, argv[at:])
        found = _option(grammar, argv, at)
        if isinstance(found, Started):
            return found
        at = found
    return _NOTHING


def _option(grammar: Grammar, argv: tuple[bytes, ...], at: int) -> Started | int:
    """What the option at `at` starts, or where the next argument is."""
    argument = argv[at]
    if argument.startswith(b"--") or not grammar.clustered:
        option, equals, value = argument.partition(b"=")
        if option in grammar.code:
            return _CODE
        if option in grammar.names:
            return _named(argv, at, value if equals else b"")
        return at + 2 if option in grammar.values and not equals else at + 1
    following = at + 1
    for place in range(1, len(argument)):
        letter = argument[:1] + argument[place : place + 1]
        rest = argument[place + 1 :]
        if letter in grammar.code:
            return _CODE
        if letter in grammar.names:
            return _named(argv, at, rest)
        if letter in grammar.values:
            if grammar.next_only:
                following += 1
            else:
                return following if rest else following + 1
        if letter in grammar.attached:
            break
    return following


def _named(argv: tuple[bytes, ...], at: int, value: bytes) -> Started:
    """A program named by an option: in the same argument, or the next one."""
    if value:
        return Started(value, (value, *argv[at + 1 :]))
    return Started(argv[at + 1], argv[at + 1 :]) if at + 1 < len(argv) else _NOTHING


_RUNTIMES = _words(
    "containerd containerd-shim containerd-shim-runc-v1 containerd-shim-runc-v2 runc crun youki conmon crio cri-o "
    "dockerd docker docker-proxy podman nerdctl ctr crictl buildkitd buildctl buildah skopeo kubelet kubectl k0s k3s"
)
_LAUNCHERS = _words(
    "sudo doas su runuser env timeout nice ionice chrt taskset nohup setsid stdbuf time xargs parallel watch strace ltrace "
    "gdb perf unshare nsenter chroot setpriv flock script screen tmux dbus-run-session dbus-launch systemd-run bwrap "
    "flatpak snap snap-confine firejail gamemoderun xvfb-run start-stop-daemon"
)
_READERS = _words(
    "vi vim view nvim vimdiff nano pico emacs emacs-gtk emacs-nox emacs-lucid emacsclient ed sed awk gawk mawk less more most bat cat tac head tail gedit "
    "kate kwrite gnome-text-editor code codium subl grep egrep fgrep zgrep rg ag ack find fd locate ls stat file man diff "
    "cp mv rm ln mkdir touch tar git ps pgrep pkill pidof top htop which whereis systemctl journalctl loginctl apt apt-get "
    "dpkg dnf yum rpm pacman ssh scp sftp rsync curl wget"
)

_MENTIONING = _RUNTIMES | _LAUNCHERS | _READERS


def only_mentions(name: bytes, comm: bytes) -> bool:
    """Whether a program's arguments are about other programs: runtimes, launchers, viewers and editors."""
    stem = name.partition(b".")[0]  # vim.basic, emacs-29.1
    return any(known in _MENTIONING for known in (name, stem, name.rstrip(_VERSION), comm))


def launches(name: bytes) -> bool:
    """Whether a program starts the one that its arguments name: sudo, timeout and their like."""
    return name in _LAUNCHERS


def is_shell(name: bytes) -> bool:
    """Whether this interpreter is a shell."""
    return name in _SHELLS
