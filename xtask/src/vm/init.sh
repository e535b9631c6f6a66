#!/bin/busybox sh
# The first process in the VM: prepares the machine, runs /job, hands out what
# came of it through the ports of the emulator, and switches off.
set -e
PATH=/bin:/usr/bin:/sbin:/usr/sbin
export PATH HOME=/root TERM=dumb

/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir /dev/pts /dev/shm /dev/mqueue
mount -t devpts devpts /dev/pts
mount -t mqueue mqueue /dev/mqueue
for place in /dev/shm /tmp /run /result; do
    mount -t tmpfs tmpfs $place
done
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t cgroup2 cgroup2 /sys/fs/cgroup
hostname vm
ip link set lo up

while read -r file parameters; do
    insmod "$file" $parameters
done </modules/order

mkdir /result/out
ln -s /result/out /out
# A port can be opened only once, and is no pipe: programs get pipes.
mkfifo /run/stdout /run/stderr
cat /run/stdout >/dev/vport0p1 &
cat /run/stderr >/dev/vport0p2 &
cd /tmp
status=0
setsid sh /job </dev/null >/run/stdout 2>/run/stderr || status=$?
wait
echo $status >/result/status
tar -C /result -cf /dev/vport0p3 status out
poweroff -f
