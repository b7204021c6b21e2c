// Package cputime provides CPU clocks for tests that limit or compare cost: unlike wall clocks,
// they stop while a busy machine runs other work. On systems other than Linux they are wall clocks.
package cputime
