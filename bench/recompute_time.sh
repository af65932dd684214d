#!/usr/bin/env bash
# recompute_time.sh PROGRAM [SETTING...]: what computing activations again costs, as `plan` says it and as it is measured.
#
# Steps of ViT-B (or of the experiment that EXPERIMENT names) as they are, with train.recompute=unit, and with auto under a
# memory.limit half way between the two, timed in turns, so that a machine that changes its speed slows all of them.  Printed
# are the ratios of step times; extra time may be off by a tenth of the planned one, and by 0.5 % of a step.
# STEPS=10: so many steps of each (5), REPEATS=5 times (3).  Measure on a machine that does nothing else.
# Exit status: 0, 1 a ratio is another than planned or more memory was in use than the limit, 2 a mistake.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2; }
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
# step_s SETTING...: the median time of a step
step_s() {
    "$program" bench "$experiment" "$@" --steps "${STEPS:-5}" --json | tail -n 1 |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["step_s"]["p50"])'
}
# judge NAME PLANNED NONE... : AGAIN...: whether the ratio of medians is what was planned
judge() {
    python3 - "$@" <<'CODE'
import statistics, sys
name, planned, times = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
at = times.index(":")
kept, again = ([float(x) for x in part] for part in (times[:at], times[at + 1:]))
measured = statistics.median(again) / statistics.median(kept) - 1
wrong = abs(measured - planned) > 0.1 * planned + 0.005
print(f"{name}: {100 * planned:.1f} % more time planned, {100 * measured:.1f} % measured" + (" WRONG" if wrong else ""))
sys.exit(wrong)
CODE
}

"$program" bench "$experiment" "$@" --steps 1 --json >/dev/null # kernels are timed once, before anything is planned
kept=$(plan_of planned_bytes.total "$@")
again=$(plan_of planned_bytes.total "$@" train.recompute=unit)
limit=$(((kept + again) / 2))
status=0
auto=(train.recompute=auto memory.limit=$limit)
none=() unit=() some=()
for _ in $(seq "${REPEATS:-3}"); do
    none+=("$(step_s "$@")")
    unit+=("$(step_s "$@" train.recompute=unit)")
    some+=("$(step_s "$@" "${auto[@]}")")
done
judge unit "$(plan_of recompute.extra_time "$@" train.recompute=unit)" "${none[@]}" : "${unit[@]}" || status=1
judge auto "$(plan_of recompute.extra_time "$@" "${auto[@]}")" "${none[@]}" : "${some[@]}" || status=1
used=$("$program" bench "$experiment" train.recompute=auto memory.limit=$limit "$@" --steps 1 --json | tail -n 1 |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["used_bytes"])')
echo "auto: $used of $limit bytes in use, $kept without"
[ "$used" -le "$limit" ] || status=1
exit $status
