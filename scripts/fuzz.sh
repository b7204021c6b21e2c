#!/bin/sh
# Runs every fuzz target of the module in turn, each for the given time, or number of
# runs such as 1000x. Findings stay in the package's testdata/fuzz, where the ordinary
# tests run them again.
set -eu

cd "$(dirname "$0")/.."
time=${1:-10m}
status=0
for file in $(git grep -l '^func Fuzz' -- '*_test.go'); do
	package=./$(dirname "$file")
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		echo "fuzz: $package $target for $time"
		go test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" || status=1
	done
done
exit $status
