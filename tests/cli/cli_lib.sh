# cli_lib.sh: what the tests of the program share; sourced by tests/cli/test_*.sh.
: "${LOCKSTEP:?the program to test}"
export LOCKSTEP_TUNE=off
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0 failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
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

# says out|err TEXT: the last run's output contains the text.
says() {
    n=$((n + 1))
    grep -qF -- "$2" "$work/$1" || fail "std$1 lacks \"$2\": $(head -c 600 "$work/$1")"
}

# JSON is read by python3; without it only exit codes and texts are checked.
have_json=true
command -v python3 >/dev/null || have_json=false
$have_json || echo "no python3: JSON is not checked"

# field PATH: what stands at the dotted path in the last line of JSON.
field() {
    python3 -c '
import json, sys
o = json.loads(open(sys.argv[1]).read().splitlines()[-1])
for key in sys.argv[2].split("."):
    o = o[key]
print(json.dumps(o) if isinstance(o, (dict, list)) else o)' "$work/out" "$1" 2>&1
}

# is PATH VALUE
is() {
    local got
    $have_json || return 0
    n=$((n + 1))
    got=$(field "$1")
    [ "$got" = "$2" ] || fail "JSON $1 is \"$got\", not \"$2\""
}

# holds EXPRESSION over o, the last line of JSON
holds() {
    $have_json || return 0
    n=$((n + 1))
    python3 -c '
import json, sys
o = json.loads(open(sys.argv[1]).read().splitlines()[-1])
sys.exit(0 if eval(sys.argv[2]) else 1)' "$work/out" "$1" || fail "JSON: not true: $1 in $(tail -1 "$work/out")"
}
