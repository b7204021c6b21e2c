package pte

// Limits bound what a reader accepts. A zero field means the default.
type Limits struct {
	Tables       int // FlatBuffers tables, default 4 Mi
	Values       int // values of a method, default 1 Mi
	Instructions int // instructions of a method, default 1 Mi
}
