"""Runs a command under a seccomp profile of Docker's format, as for a container without capabilities.

    docker_profile.py PROFILE COMMAND [ARGUMENT…]

PROFILE is that of Debian's package golang-github-containers-common, for Podman. What differs in Docker's own is below.
libseccomp (libseccomp.so.2) makes the filter.
"""

import ctypes
import json
import os
import sys

# Docker answers EPERM to calls that its profile does not name, and lets a container without capabilities do none of
# these. Docker 25 and later refuse io_uring, too.
DENIED = {"add_key", "get_mempolicy", "io_uring_enter", "io_uring_register", "io_uring_setup", "keyctl", "mbind", "mount"}
DENIED |= {"pivot_root", "request_key", "set_mempolicy", "setns", "umount", "umount2", "unshare"}
# It refuses clone3, whose flags a filter cannot see, so that programs use clone, and clone only with namespaces.
NO_CLONE3 = {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}
CLONE = {"index": 0, "op": "SCMP_CMP_MASKED_EQ", "value": 0x7E020000, "valueTwo": 0}
OWN = [NO_CLONE3, {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [CLONE]}]

ALLOW = 0x7FFF0000
EPERM = 1
OPERATORS = {"SCMP_CMP_NE": 1, "SCMP_CMP_LT": 2, "SCMP_CMP_LE": 3, "SCMP_CMP_EQ": 4}
OPERATORS |= {"SCMP_CMP_GE": 5, "SCMP_CMP_GT": 6, "SCMP_CMP_MASKED_EQ": 7}


class Comparison(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def refusal(errno):
    return 0x00050000 | errno


def applies(rule, architecture):
    """A rule that asks for a capability or another architecture is not for us."""
    includes, excludes = rule.get("includes") or {}, rule.get("excludes") or {}
    wanted = includes.get("arches", [architecture])
    return architecture in wanted and not includes.get("caps") and architecture not in excludes.get("arches", [])


def install(rules):
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    default = refusal(EPERM)
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(default)))
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    for rule in rules:
        action = ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else refusal(rule.get("errnoRet", EPERM))
        if not applies(rule, architecture) or action == default:
            continue
        arguments = [
            Comparison(each["index"], OPERATORS[each["op"]], each["value"], each.get("valueTwo", 0))
            for each in rule.get("args") or []
        ]
        comparisons = (Comparison * max(len(arguments), 1))(*arguments)
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if number >= 0:
                code = library.seccomp_rule_add_array(context, ctypes.c_uint32(action), number, len(arguments), comparisons)
                if code not in (0, -17):
                    sys.exit(f"docker_profile.py: {name}: {os.strerror(-code)}")
    if library.seccomp_load(context):
        sys.exit("docker_profile.py: the kernel refuses the filter")


def main():
    path, *command = sys.argv[1:]
    with open(path) as file:
        rules = json.load(file)["syscalls"]
    ours = DENIED | {"clone", "clone3"}
    install([rule | {"names": set(rule["names"]) - ours} for rule in rules] + OWN)
    os.execvp(command[0], command)


main()
