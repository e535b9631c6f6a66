#!/bin/sh
# survey.sh RESULTS [OPTION OF srun]…: measures nodes that no other job uses meanwhile, one result a node.
# All idle nodes of a partition: survey.sh results --partition=main --nodes="$(sinfo -h -p main -t idle -o %D)"
# RESULTS is a directory that all nodes see. $LATSCOPE is the binary there.
set -eu
results=${1:?usage: survey.sh RESULTS [OPTION OF srun]…}
shift
mkdir -p "$results"
results=$(cd "$results" && pwd)
# One task a node has all its CPUs: no binding keeps latscope from any.
# The variables are those of the node.
# shellcheck disable=SC2016
exec srun --exclusive --ntasks-per-node=1 --cpu-bind=none --time=15 --job-name=latscope "$@" sh -c '
    code=0
    "$0" survey --quick $LATSCOPE_OPTIONS --quiet --without blocks --label "slurm_job=$SLURM_JOB_ID" \
        --json "$1/$SLURMD_NODENAME-$SLURM_JOB_ID.json.gz" || code=$?
    # 2 and 3: a criterion is exceeded, or cannot be judged. There is a result.
    case $code in 2 | 3) code=0 ;; esac
    exit $code' "${LATSCOPE:-latscope}" "$results"
