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
