package pte

// Limits bound what a reader accepts. A zero field means the default.
type Limits struct {
	Tables       int   // FlatBuffers tables, default 4 Mi
	Values       int   // values of a method, default 1 Mi
	Instructions int   // instructions of a method, default 1 Mi
	ArenaBytes   int64 // planned buffers of a method together, default 8 GiB
}

func (l Limits) withDefaults() Limits {
	def := Limits{Tables: 4 << 20, Values: 1 << 20, Instructions: 1 << 20, ArenaBytes: 8 << 30}
	set(&l.Tables, def.Tables)
	set(&l.Values, def.Values)
	set(&l.Instructions, def.Instructions)
	set(&l.ArenaBytes, def.ArenaBytes)
	return l
}

func set[T int | int64](field *T, def T) {
	if *field == 0 {
		*field = def
	}
}
