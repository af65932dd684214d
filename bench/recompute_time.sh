#!/usr/bin/env bash
# recompute_time.sh PROGRAM [SETTING...]: what computing activations again costs, as `plan` says it and as it is measured.
#
# Steps of ViT-B (or of the experiment that EXPERIMENT names) as they are, with train.recompute=unit, and with auto under a
# memory.limit half way between the two.  One process takes both kinds of steps by turns (`bench --against --turn 1`), and the median of
# the ratios of neighbours counts, so that a machine that changes its speed changes no ratio; of several processes again the median.
# Extra time may be off by a tenth of the planned one, and by 0.5 % of a step.
# STEPS=10: so many steps of each (5), REPEATS=5 times (3).  Measure on a machine that does nothing else; it needs memory for both.
# Exit status: 0, 1 a ratio is another than planned or more memory was in use than the limit, 2 a mistake.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
program=$1
shift
[ $# -gt 0 ] || set -- model.size=64 batch.per_rank=64
experiment=${EXPERIMENT:-vit}

# plan_of FIELD SETTING...: a field of what plan says
plan_of() {
    local field=$1
    shift
    "$program" plan "$experiment" "$@" --json | tail -n 1 | python3 -c "
import json, sys
o = json.load(sys.stdin)
for key in '$field'.split('.'): o = o[key]
print(o)"
}
# ratio OTHER SETTING...: how much longer a step takes than with the setting OTHER, and the bytes that it has in use
ratio() {
    local other=$1
    shift
    "$program" bench "$experiment" "$@" --against "$other" --turn 1 --steps "${STEPS:-5}" --json | tail -n 1 | python3 -c '
import json, sys
o = json.load(sys.stdin)
print(o["compared"]["ratio"] - 1, o["used_bytes"])'
}
# judge NAME PLANNED "RATIO BYTES"...: whether the median of the ratios is what was planned
judge() {
    python3 - "$@" <<'CODE'
import statistics, sys
name, planned = sys.argv[1], float(sys.argv[2])
ratios = sorted(float(x.split()[0]) for x in sys.argv[3:])
measured = statistics.median(ratios)
wrong = abs(measured - planned) > 0.1 * planned + 0.005
print(f"{name}: {100 * planned:.1f} % more time planned, {100 * measured:.1f} % measured"
      f" ({100 * ratios[0]:.1f} to {100 * ratios[-1]:.1f})" + (" WRONG" if wrong else ""))
sys.exit(wrong)
CODE
}

"$program" bench "$experiment" "$@" --steps 1 --json >/dev/null # kernels are timed once, before anything is planned
kept=$(plan_of planned_bytes.total "$@")
again=$(plan_of planned_bytes.total "$@" train.recompute=unit)
limit=$(((kept + again) / 2))
status=0
auto=(train.recompute=auto memory.limit=$limit)
unit=() some=()
for _ in $(seq "${REPEATS:-3}"); do
    unit+=("$(ratio train.recompute=none "$@" train.recompute=unit)")
    some+=("$(ratio memory.limit=1TiB "$@" "${auto[@]}")") # with so much nothing is computed again
done
judge unit "$(plan_of recompute.extra_time "$@" train.recompute=unit)" "${unit[@]}" || status=1
judge auto "$(plan_of recompute.extra_time "$@" "${auto[@]}")" "${some[@]}" || status=1
used=${some[0]#* }
echo "auto: $used of $limit bytes in use, $kept without"
[ "$used" -le "$limit" ] || status=1
exit $status
