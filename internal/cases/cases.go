// Package cases (for tests) selects the cases of tests that have thousands of similar ones. "make test" runs a part of them
// in which every value of every parameter occurs; "make cases", a part of "make check", runs all.
package cases

import "os"

// envAll is the variable that selects all cases.
const envAll = "ETRUN_ALL_CASES"

// All reports whether all cases run.
func All() bool { return os.Getenv(envAll) != "" }

// Of returns the number of random cases to run: some, or all.
func Of(some, all int) int {
	if All() {
		return all
	}
	return some
}

// Every reports whether case i runs: one in n, or all.
func Every(n, i int) bool { return i%n == 0 || All() }
