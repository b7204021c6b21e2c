// Package await (for tests) waits for what other goroutines, the garbage collector or processes do
// and announce nowhere. Where a channel can announce it, use the channel.
package await

import (
	"testing"
	"time"
)

const (
	// limit is long because it is reached only by failures: a loaded machine must not fail a test.
	limit    = time.Minute
	interval = time.Millisecond
)

// True returns when ok returns true. After a minute it fails the test; what names the condition, such
// as "the image is closed". Call it in the test's goroutine.
func True(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !Until(ok) {
		t.Fatalf("not within %v: %s", limit, what)
	}
}

// Until reports whether ok returns true within a minute, for tests that print more about a failure.
func Until(ok func() bool) bool {
	end, tick := time.After(limit), time.NewTicker(interval)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			return ok()
		}
	}
	return true
}
