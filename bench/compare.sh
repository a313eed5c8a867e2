#!/bin/bash
# compare.sh OLD [CASES]: does the simulator of commit OLD make the same of every fabric of the tests as this one?
#
# The tests of both versions run with the same CASES random fabrics for each property; each fabric leaves a line with its trace hash and a digest of
# its flows, directions, series, levels, errors and samples (crates/fabric/src/digest.rs). Every line of the old version must be one of the new.
set -euo pipefail
old=$1 cases=${2:-}
root=$(git rev-parse --show-toplevel) work=$(mktemp -d)
trap 'git -C "$root" worktree remove --force "$work/old"; rm -r "$work"' EXIT
git -C "$root" worktree add --quiet --detach "$work/old" "$old"
cp "$root/crates/fabric/src/digest.rs" "$work/old/crates/fabric/src/digest.rs"
sed -i '0,/^mod /s//mod digest;\nmod /' "$work/old/crates/fabric/src/lib.rs"
for version in old new; do
    tree=$root
    [ "$version" = new ] || tree=$work/old
    (
        cd "$tree"
        export TLPLAB_TRACES=$work/$version.txt CARGO_TARGET_DIR=$root/target/compare-$version
        [ -z "$cases" ] || export PROPTEST_CASES=$cases
        cargo test --quiet -p tlplab-fabric --test fabric > /dev/null
    )
    sort -o "$work/$version.txt" "$work/$version.txt"
done
different=$(comm -23 "$work/old.txt" "$work/new.txt" | tee /dev/stderr | wc -l)
echo "$(wc -l < "$work/old.txt") fabrics, $different of them different"
[ "$different" = 0 ]
