package pte

import "math"

// Limits bound what a reader accepts. A zero field means the default.
type Limits struct {
	Tables       int   // FlatBuffers tables, default 2 Mi
	Values       int   // values per method, default 512 Ki
	Instructions int   // instructions per method, default 512 Ki
	ArenaBytes   int64 // sum of a method's planned buffers, default 8 GiB
}

func (l Limits) withDefaults() Limits {
	def := Limits{Tables: 2 << 20, Values: 512 << 10, Instructions: 512 << 10, ArenaBytes: 8 << 30}
	set(&l.Tables, def.Tables)
	set(&l.Values, def.Values)
	set(&l.Instructions, def.Instructions)
	set(&l.ArenaBytes, def.ArenaBytes)
	l.ArenaBytes = min(l.ArenaBytes, math.MaxInt)
	return l
}

func set[T int | int64](field *T, def T) {
	if *field == 0 {
		*field = def
	}
}
