#!/bin/sh
# A quick survey whose figures are results of tmt. Figures that are not to be trusted in full are "info".
set -eu
signals=$TMT_TEST_DATA/signals
# shellcheck disable=SC2086
"${LATSCOPE:-latscope}" survey --quick ${LATSCOPE_OPTIONS-} --quiet --without blocks \
    --json "$TMT_TEST_DATA/latscope.json.gz" --lava="$signals"
{
    printf -- '- name: /\n  result: pass\n  log: [latscope.json.gz]\n'
    sed -n -e 's/RESULT=unknown/RESULT=info/' \
        -e 's|^<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=\([^ >]*\) RESULT=\([a-z]*\)|- name: /\1\n  result: \2|' \
        -e 's| MEASUREMENT=\([^ >]*\) UNITS=\([a-z]*\)>|\n  note: ["\1 \2"]|' \
        -e 's|>$||' -e p "$signals"
} > "$TMT_TEST_DATA/results.yaml"
