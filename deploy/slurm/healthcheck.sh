#!/bin/sh
# HealthCheckProgram of Slurm: measures an idle node, and ends within 60 s, after which Slurm kills it.
#
#   HealthCheckProgram=/usr/local/sbin/latscope-healthcheck
#   HealthCheckInterval=86400
#   HealthCheckNodeState=IDLE
#
# Slurm starts it on all nodes at once. The first five results are the node's baseline. Then the last five are compared
# with them: a node that became slower is drained, and one that exceeds a budget of absolute limits, if there is one.
# After a change that is wanted, remove the baseline.
set -u
PATH=$PATH:/usr/local/bin:/usr/bin:/bin
[ ! -r /etc/default/latscope ] || . /etc/default/latscope
spool=${LATSCOPE_SPOOL:-/var/lib/latscope/spool}
baseline=${LATSCOPE_BASELINE:-/var/lib/latscope/baseline}
budget=${LATSCOPE_BUDGET:-/etc/latscope/budget.toml}
file=$spool/$(date -u +%Y%m%dT%H%M%SZ)-$(uname -n).json.gz
mkdir -p "$spool" "$baseline" || exit 1

# After 40 s SIGINT ends it with what was measured until then; 5 s later it is killed.
# shellcheck disable=SC2086
timeout --signal=INT --kill-after=5 40 latscope survey --quick ${LATSCOPE_OPTIONS---only cpu,memory,sync,syscall} \
    --quiet --without blocks --json "$file"
# What nobody fetches does not fill the disk: the oldest go.
ls -1r "$spool" | tail -n +$((${LATSCOPE_KEEP:-100} + 1)) | while read -r old; do rm -f "$spool/$old"; done
[ -r "$file" ] || exit 0

drain() {
    scontrol update nodename="${SLURMD_NODENAME:-$(uname -n)}" state=drain reason="latscope: $1, $file"
    exit
}

if [ -r "$budget" ]; then
    timeout 5 latscope gate --quiet --budget "$budget" "$file"
    [ $? -ne 2 ] || drain "budget exceeded"
fi
if [ "$(ls "$baseline" | wc -l)" -lt 5 ]; then
    cp "$file" "$baseline"
    exit
fi
set --
for recent in $(ls -1r "$spool" | head -n 5); do
    # A result of the baseline is not compared with it.
    [ -e "$baseline/$recent" ] || set -- "$@" "$spool/$recent"
done
[ $# -eq 5 ] || exit 0
timeout 8 latscope gate --quiet --baseline "$baseline" -- "$@"
[ $? -ne 2 ] || drain "slower than its baseline"
