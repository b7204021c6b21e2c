package xnnpack

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// ID identifies the backend in programs.
const ID = graph.ID

// Engine selects the implementation that runs graphs.
type Engine string

// Engines. EngineAuto selects the engine that is estimated to be faster for each graph. It uses the
// Go engine if the library is not available, does not support the graph, or fails. EngineNative
// returns an error if the library is missing, does not support the graph or computes it wrongly; if
// the library fails to create the graph, the Go engine runs it, with a warning. EngineGo treats NaN,
// infinities and subnormal numbers as PyTorch does; the library does not.
const (
	EngineAuto   Engine = "auto"
	EngineNative Engine = "native" // libXNNPACK
	EngineGo     Engine = "go"
	// EngineReference is EngineGo. The string "reference" is accepted, too.
	//
	// Deprecated: use EngineGo.
	EngineReference = EngineGo
)

// Engines lists all engines.
var Engines = []Engine{EngineAuto, EngineNative, EngineGo}

// formerName is the name of EngineGo in earlier versions.
const formerName Engine = "reference"

// Backend compiles payloads of the XNNPACK delegate. The zero value is ready to use.
type Backend struct {
	Engine       Engine // empty means EngineAuto
	Library      string // path of libXNNPACK or its folder, see [xnn.Open]; empty means to search for it
	WeightsCache string // folder in which packed weights are stored for later processes, empty for none
	MapWeights   bool   // map files of packed weights, sharing them with other processes; the files must not change
	NoRepair     bool   // disable the repair of known exporter faults in payloads
	// Values stores the result of every node in its own memory, so that observers can read it (see
	// [delegate.Viewer]). This needs more memory and time.
	Values bool
	// KeepConstants disables the release of constants that have been packed, so that Info contains
	// them.
	KeepConstants bool
}

// ID returns the name that identifies the backend in programs.
func (Backend) ID() string { return ID }

// automatic reports whether the engine is chosen for each graph.
func (b Backend) automatic() bool { return b.Engine == "" || b.Engine == EngineAuto }
