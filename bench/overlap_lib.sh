# overlap_lib.sh: runs with and without overlap in turns, and what summary.json says of them.  Sourced by overlap.sh and
# overlap_hosts.sh, which define train OVERLAP: trains in $work/run.

# figures: milliseconds of a step that are exposed communication, waiting alone, and all.
figures() {
    tr ',{' '\n\n' <"$work/run/summary.json" | awk -F: '
        /"step_s"/ { inside = 1 }
        /"exposed_s_per_step"/ { exposed = $2 + 0 }
        /"waiting_s_per_step"/ { waiting = $2 + 0 }
        inside && /"p50"/ { step = $2 + 0; inside = 0 }
        END { printf "%.3f %.3f %.3f\n", 1e3 * exposed, 1e3 * waiting, 1e3 * step }'
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# in_turns ROUNDS: a line for every run, then medians and their ratio.  Fails unless overlap halves the exposed time.
in_turns() {
    local round overlap exposed waiting step
    printf '%-6s %-8s %12s %12s %12s\n' round overlap "exposed ms" "waiting ms" "step ms"
    for ((round = 1; round <= $1; round++)); do
        for overlap in true false; do
            rm -rf "$work/run"
            train $overlap
            read -r exposed waiting step < <(figures)
            printf '%-6s %-8s %12s %12s %12s\n' "$round" $overlap "$exposed" "$waiting" "$step"
            echo "$exposed" >>"$work/exposed.$overlap"
            echo "$step" >>"$work/step.$overlap"
        done
    done
    awk -v a="$(median <"$work/exposed.true")" -v b="$(median <"$work/exposed.false")" \
        -v s="$(median <"$work/step.true")" -v t="$(median <"$work/step.false")" 'BEGIN {
        printf "exposed per step: %.3f ms with overlap, %.3f ms without: ratio %.2f; step time ratio %.3f\n", a, b, a / b, s / t
        exit !(a < b / 2) }'
}
