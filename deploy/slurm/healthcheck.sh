#!/bin/sh
# HealthCheckProgram of Slurm: measures an idle node, and ends within 60 s, after which Slurm kills it.
#
#   HealthCheckProgram=/usr/local/sbin/latscope-healthcheck
#   HealthCheckInterval=86400
#   HealthCheckNodeState=IDLE
#
# Slurm starts it on all nodes at once. With a budget (`latscope gate --learn`) a node that exceeds it is drained.
set -u
PATH=$PATH:/usr/local/bin:/usr/bin:/bin
[ ! -r /etc/default/latscope ] || . /etc/default/latscope
spool=${LATSCOPE_SPOOL:-/var/lib/latscope/spool}
budget=${LATSCOPE_BUDGET:-/etc/latscope/budget.toml}
file=$spool/$(date -u +%Y%m%dT%H%M%SZ)-$(uname -n).json.gz
mkdir -p "$spool" || exit 1

# After 45 s SIGINT ends it with what was measured until then; 5 s later it is killed.
# shellcheck disable=SC2086
timeout --signal=INT --kill-after=5 45 latscope survey --quick ${LATSCOPE_OPTIONS---only cpu,memory,sync,syscall} \
    --quiet --without blocks --json "$file"
[ -r "$file" ] && [ -r "$budget" ] || exit 0
timeout 5 latscope gate --quiet --budget "$budget" "$file"
[ $? -eq 2 ] || exit 0
scontrol update nodename="${SLURMD_NODENAME:-$(uname -n)}" state=drain reason="latscope: budget exceeded, $file"
