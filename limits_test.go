package etrun

import "testing"

func TestLimitsOfMaxMemory(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name                    string
		limits                  Limits
		maxMemory               int64
		file, planned, declared int64
	}{
		{"defaults", Limits{}, 0, 8 * gib, gib, 8 * gib},
		{"less memory", Limits{}, gib / 2, 8 * gib, gib, 8 * gib},
		{"more memory", Limits{}, 4 * gib, 8 * gib, 4 * gib, 8 * gib},
		{"much more memory", Limits{}, 16 * gib, 16 * gib, 16 * gib, 16 * gib},
		{"limits of the caller", Limits{FileBytes: 1, PlannedBytes: 2, Format: FormatLimits{ArenaBytes: 3}}, 16 * gib, 1, 2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.limits.withDefaults(c.maxMemory)
			want := [...]int64{min(c.file, maxBytes), min(c.planned, maxBytes), c.declared}
			if got := [...]int64{got.FileBytes, got.PlannedBytes, got.Format.ArenaBytes}; got != want {
				t.Errorf("got %v bytes of files, plans and arenas, want %v", got, want)
			}
		})
	}
}
