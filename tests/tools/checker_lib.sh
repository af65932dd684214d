# checker_lib.sh: what the tests of the rules about sources share; sourced by tests/tools/test_*.sh.
# A rule is a script check_NAME.sh [FOLDER]; its test shows that it notices what it is there for, then runs it on this tree.
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
failures=0

# expect pass|fail NAME FILE LINE...: runs $checker on a tree that holds FILE with these lines.
expect() {
    local want=$1 name=$2 file=$3 tree got=pass
    shift 3
    tree=$(mktemp -d)
    mkdir -p "$tree/include/lockstep" "$tree/src/base" "$tree/$(dirname "$file")"
    printf '#include "lockstep/status.h"\n' >"$tree/src/base/fine.c"
    printf '%s\n' "$@" >"$tree/$file"
    bash "$here/$checker" "$tree" >"$tree/output" || got=fail
    if [ "$got" = "$want" ]; then
        echo "checker: $name: $got, as it should"
    else
        echo "checker: $name: expected $want, got $got:"
        sed 's/^/    /' "$tree/output"
        failures=$((failures + 1))
    fi
    rm -rf "$tree"
}

# expect_tree_passes: the last line of a test
expect_tree_passes() {
    echo "this tree:"
    bash "$here/$checker" || failures=$((failures + 1))
    [ "$failures" -eq 0 ]
}
