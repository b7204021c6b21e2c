package compile

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
)

// Options are the options of [Lower].
type Options struct {
	Backends  map[string]delegate.Backend // by ID, for the delegates of the program
	Writers   []lowering.Writer           // the backends that write regions; the first that accepts a call takes it
	Operators *kernels.Set
	Named     func(key string) ([]byte, bool) // named data of the program and its data files; nil for that of the program
	FileBytes int64                           // of the program and its data files; 0 for those of the program
	Methods   []string                        // the methods to lower, nil for all
	All       bool                            // regions are lowered whatever their work is
	Portable  bool                            // the file is for a runtime with ExecuTorch's portable operators
	Planned   int64                           // limit of planned bytes of a method
	AsWritten bool                            // faults of exporters are not repaired
	External  bool                            // constants of at least 512 bytes are in a data file
}
