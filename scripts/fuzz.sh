#!/bin/sh
# Runs every fuzz target of the module for the given time, or number of runs such as 1000x:
# as many targets at once as there are processors, since a target is built and started on
# one of them. Findings stay in the package's testdata/fuzz, where the ordinary tests run
# them again.
set -eu

cd "$(dirname "$0")/.."
time=${1:-10m}

# Prints the output of a target when it has ended, in one piece.
run='
	output=$(go test -vet=off -run "^\$" -fuzz "^$2\$" -fuzztime "$0" -parallel 1 "$1" 2>&1) && status=0 || status=$?
	printf "fuzz: %s %s for %s\n%s\n" "$1" "$2" "$0" "$output"
	exit $status'
for file in $(git grep -l '^func Fuzz' -- '*_test.go'); do
	sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|./$(dirname "$file") \1|p" "$file"
done | xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 2 sh -c "$run" "$time"
