# cli_lib.sh: what the tests of the program share; sourced by tests/cli/test_*.sh.
: "${LOCKSTEP:?the program to test}"
export LOCKSTEP_TUNE=off
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")") # the folder of these tests
work=$(mktemp -d)
pids=() # what a failed check has left must not outlive the test
trap '[ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2>/dev/null; rm -rf "$work"' EXIT
n=0 failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# enter_work: for tests whose runs lie where they stand and are small: the working directory is $work, a rank has one thread
enter_work() {
    export LOCKSTEP_THREADS=1
    cd "$work" || exit 1
}

# breathe: between two looks at something that another process will do, which wants the core, too
breathe() {
    sleep 0.02
}

# run CODE ARGUMENT...: runs the program; the exit code must be CODE.  Output is left in $work/out and $work/err.
run() {
    local want=$1 got
    shift
    n=$((n + 1))
    "$LOCKSTEP" "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$want" ] || fail "lockstep $*: exit code $got, not $want: $(cat "$work/err")"
}

# mpi CODE ARGUMENT...: as run, by mpirun (of tools/mpi_here.sh), which gets the arguments
mpi() {
    local want=$1 got
    shift
    n=$((n + 1))
    timeout 100 "${mpi[@]}" "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ $got -eq "$want" ] || fail "${mpi[*]} $*: exit code $got, not $want: $(cat "$work/out" "$work/err")"
}

# says out|err TEXT: the last run's output contains the text.
says() {
    local text
    n=$((n + 1))
    IFS= read -r -d '' text <"$work/$1" # without a process: there are thousands of these
    [[ $text == *"$2"* ]] || fail "std$1 lacks \"$2\": $(head -c 600 "$work/$1")"
}

# slow_build: whether the program was built with a sanitizer, which makes it ten to fifty times slower
slow_build() {
    grep -q '^LS_SANITIZE:.*=.\+' "$LS_BUILD_DIR/CMakeCache.txt"
}

# JSON is read by python3; without it only exit codes and texts are checked.
have_json=true
command -v python3 >/dev/null || have_json=false
$have_json || echo "no python3: JSON is not checked"

# needs_python: for tests that are nothing without it
needs_python() {
    $have_json && return
    echo "skipped: no python3"
    exit 77
}

# tensors ARGUMENT...: tensors.py agrees
tensors() {
    python3 "$here/tensors.py" "$@" || fail "tensors.py $*"
}

# fields: what stands at the dotted paths that it reads, one a line, in the last line of JSON.
fields() {
    python3 -c '
import json, sys
last = json.loads(open(sys.argv[1]).read().splitlines()[-1])
for path in sys.stdin.read().splitlines():
    o = last
    for key in path.split("."):
        o = o[key]
    print(json.dumps(o) if isinstance(o, (dict, list)) else o)' "$work/out" 2>&1
}
# field PATH: one of them.
field() {
    fields <<<"$1"
}

# is PATH VALUE [PATH VALUE ...]
is() {
    local i got wrong=()
    $have_json || return 0
    n=$((n + $# / 2))
    mapfile -t got < <(for ((i = 1; i < $#; i += 2)); do echo "${!i}"; done | fields)
    for i in "${!got[@]}"; do [ "${got[i]}" = "${@:2 * i + 2:1}" ] || wrong+=("${@:2 * i + 1:1} is \"${got[i]}\""); done
    [ ${#wrong[@]} -eq 0 ] && [ ${#got[@]} -eq $(($# / 2)) ] || fail "JSON: ${wrong[*]}, not as in: $*"
}

# holds EXPRESSION...: over o, the last line of JSON.  To start python takes longer than to evaluate dozens.
holds() {
    local wrong
    $have_json || return 0
    n=$((n + $#))
    wrong=$(python3 -c '
import json, sys
o = json.loads(open(sys.argv[1]).read().splitlines()[-1])
for expression in sys.argv[2:]:
    if not eval(expression):
        print(expression)' "$work/out" "$@" 2>&1) && [ -z "$wrong" ] || fail "JSON: not true: $wrong in $(tail -1 "$work/out")"
}

# hash RUN: the weights at the end of a run
hash() {
    grep -o '"weights_xxh3": "[0-9a-f]*"' "$1/summary.json"
}

# losses RUN: those of all steps that were reported
losses() {
    sed -n 's/.*"train\/loss_step": \([0-9.e+-]*\).*/\1/p' "$1/metrics.jsonl"
}

# same_losses RUN RUN STEPS: the losses of that many steps are equal to rounding
same_losses() {
    n=$((n + 1))
    paste <(losses "$1") <(losses "$2") | awk -v steps="$3" '
        { d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || !(d < 1e-4)) bad = 1 }
        END { exit bad || NR != steps }' ||
        fail "$1 and $2 have different losses, or not $3: $(paste <(losses "$1") <(losses "$2"))"
}

# reached RUN LINES PID: waits until the run has reported so much, or its process has ended
reached() {
    while kill -0 "$3" 2>/dev/null; do
        [ "$(wc -l 2>/dev/null <"$1/metrics.jsonl" || echo 0)" -ge "$2" ] && return
        breathe
    done
    fail "$1 ended before line $2: $(cat "$work/err")"
}
