// Package integration has the tests that drive the public package with whole programs: mutants, campaigns, repairs, and first
// runs. It has no code of its own, and makes no promise.
package integration
