#!/bin/sh
# Runs `latscope WORD…` as in a container of Docker: `enter.sh ROOT WORD…`, in mount and process namespaces of its own.
# The user is nobody, without capabilities; ROOT, an empty directory, becomes a read-only root. $LATSCOPE is the program,
# $FILTER and $PROFILE the seccomp filter, $GROUP the control group that is visible, $HIDDEN what is not there: proc, sys,
# null.
set -eu
root=$1
shift
mount -t tmpfs -o mode=755 none "$root"
cd "$root"
mkdir dev etc proc sys tmp opt
for directory in usr $(cd / && ls -d bin lib* sbin 2>/dev/null); do
    if [ -L "/$directory" ]; then
        ln -s "$(readlink "/$directory")" "$directory"
    else
        mkdir "$directory"
        mount --bind "/$directory" "$directory"
    fi
done
cp "$LATSCOPE" opt/latscope
cp "$PROFILE" opt/profile.json
cp "$FILTER" opt/filter.py
mount -t tmpfs -o mode=755 none dev
mkdir dev/shm dev/pts dev/mqueue
for device in null zero full random urandom tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mount -t tmpfs -o size=64m,mode=1777,nosuid,nodev,noexec none dev/shm
mount -t mqueue none dev/mqueue
mount -t proc none proc
mount -t sysfs -o ro none sys
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
# Of the control groups a container sees its own.
mount -t tmpfs -o mode=755 none sys/fs/cgroup
if [ -n "${GROUP:-}" ]; then
    mkdir sys/fs/cgroup/cpu
    mount --bind "$GROUP" sys/fs/cgroup/cpu
    mount -o remount,bind,ro sys/fs/cgroup/cpu
fi
for hidden in ${HIDDEN:-}; do
    case $hidden in
        null) umount dev/null && rm dev/null ;;
        *) mount -t tmpfs -o ro none "$hidden" ;;
    esac
done
mount -o remount,ro dev
mount -o remount,ro "$root"
exec chroot "$root" setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    python3 /opt/filter.py /opt/profile.json /opt/latscope "$@"
