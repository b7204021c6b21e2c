// Package repo has the tests of the repository itself: its promised API, and which package may import which. It has no code of its
// own.
package repo
