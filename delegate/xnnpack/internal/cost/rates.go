package cost

// pair is a time in nanoseconds, or a fraction, for the library and for the Go engine.
type pair [2]float64

// rate models the time of one kind of node on one thread. A unit of work is a MAC of a product or
// an element of a window; see the function rows for rows.
//
// The rates are fitted to measurements of 1,200 graphs with libXNNPACK 20241108 on a processor with
// AVX-512 at 3 GHz: 530 of one node, each kind at several sizes from one element up, and 670 of
// models. Each measurement is the shortest time of a run on one thread, averaged over 30
// microseconds of runs with the same arguments. BenchmarkRates measures graphs of one node in this
// way.
type rate struct {
	start   pair // per node, in addition to NodeTime
	Element pair // per element of the output
	Codes   pair // per element of the output if elements have 8 bits; 0: as element
	work    pair // per unit of work
	short   pair // fraction of work for 8-bit elements; 0: all
	row     pair // per row
}

// Indices of a pair.
const (
	ByLibrary = iota
	ByGo
)

var (
	// Time to enter and leave an engine, and to start a node in it.
	callTime, NodeTime = pair{41, 13}, pair{16, 5}

	// Time per element of a transposed matrix; time per element, divided by the shorter side, of a
	// matrix whose shorter side is less than narrowMatrix; and time per matrix. The second pairs
	// are for 8 bits.
	turnTime, turnShort         = pair{0.06, 0.06}, pair{0.07, 0.035}
	turnNarrow, turnNarrowShort = pair{1, 1.7}, pair{2.7, 1.75}
	turnLong, turnLongShort     = pair{0.8, 0.8}, pair{2.7, 0.75} // turnNarrow if the other side is at least longMatrix
	turnMatrix                  = pair{10, 45}

	// Time per row of at most four elements that stays contiguous, in the Go engine.
	turnShortRow = 1.3

	// Time per element and per matrix of two or three rows of 32-bit elements in the Go engine, which has loops for them.
	turnFew, turnFewMatrix = 0.1, 12.0
)

const (
	narrowMatrix = 8
	fewRows      = 3 // see turnFew
	longMatrix   = 512
	nearTurned   = 1 << 13 // with more 32-bit elements, each takes turnFar longer
	turnFar      = 0.06
	farElements  = 1 << 17 // more elements do not fit in caches, and each takes farTime longer
	farTime      = 0.06

	// Operands and results of fewer elements fit in the nearest cache: if an element takes less
	// than nearTime, it takes nearShare of its time there.
	nearElements, nearTime, nearShare = 1 << 13, 0.115, 0.4

	nearTaps, farTaps = 4096, 1.45 // with more floats, a depthwise filter and the windows do not fit in the nearest cache
	weightTime        = 0.02       // to read a 32-bit weight of a product from memory
	narrowTile        = 16         // output channels that libraries with narrow products compute at once
	resizeVector      = 8          // channels that the library interpolates at once
	softmaxVector     = 16         // elements of a softmax row that are computed at once
)

// Names of the rates of conversions to 8-bit elements with one scale, and with one scale per row.
const convertTo8, convertRowsTo8 = "Convert to 8 bits", "Convert rows to 8 bits"

// Rates of nodes, by type name.
var Rates = map[string]rate{
	"FullyConnected": {start: pair{0, 40}, work: pair{0.0186, 0.0182}, short: pair{0.27, 0.25},
		Element: pair{0.085, 0.085}, Codes: pair{0.085, 0.08}, row: pair{3.4, 0}},
	"BatchMatrixMultiply": {start: pair{0, 15}, work: pair{0.024, 0.0184}, short: pair{0.3, 0.36},
		Element: pair{0.04, 0.02}, row: pair{45, 40}},

	"AvgPooling2d": {start: pair{0, 30}, work: pair{0.07, 0.017}, Element: pair{0.15, 0.2}, row: pair{1, 6}},
	"MaxPooling2d": {start: pair{0, 30}, work: pair{0.061, 0.021}, short: pair{0.24, 0.5},
		Element: pair{0.15, 0.14}, row: pair{1, 6}},
	"GlobalAvgPooling2d":     {start: pair{30, 20}, work: pair{0.035, 0.047}, short: pair{0.31, 2.1}, Element: pair{0.3, 0.1}},
	"Softmax":                {start: pair{4, 10}, Element: pair{0.24, 0.24}, row: pair{19.5, 9}},
	"StaticResizeBilinear2D": {start: pair{10, 20}, Element: pair{0.34, 0.19}},
	"ResizeBilinearToPlanes": {start: pair{ByGo: 20}, Element: pair{ByGo: 0.55}},

	"StaticTranspose":   {start: pair{4, 22}, Element: pair{0.06, 0.075}, Codes: pair{0.02, 0.02}, row: pair{1.5, 0.6}},
	"Rearrange":         {start: pair{ByGo: 22}, Element: pair{ByGo: 0.075}, Codes: pair{ByGo: 0.02}, row: pair{ByGo: 0.6}},
	"StaticReshape":     {Element: pair{0.073, 0.073}, Codes: pair{0.01, 0.009}},
	"Copy":              {Element: pair{0.075, 0.073}, Codes: pair{0.01, 0.009}},
	"StaticSlice":       {start: pair{0, 10}, Element: pair{0.08, 0.075}, Codes: pair{0.02, 0.02}, row: pair{2.1, 0.5}},
	"StaticConstantPad": {start: pair{10, 30}, Element: pair{0.02, 0.11}, Codes: pair{0.01, 0.03}, row: pair{8.7, 0}},
	"Concatenate2":      {start: pair{12, 15}, Element: pair{0.06, 0.06}, Codes: pair{0.015, 0.015}, row: pair{1.4, 0.9}},
	"Concatenate3":      {start: pair{16, 15}, Element: pair{0.06, 0.06}, Codes: pair{0.015, 0.015}, row: pair{1.4, 0.9}},
	"Concatenate4":      {start: pair{20, 15}, Element: pair{0.06, 0.06}, Codes: pair{0.015, 0.015}, row: pair{1.4, 0.9}},
	"Concatenate5":      {start: pair{24, 15}, Element: pair{0.06, 0.06}, Codes: pair{0.015, 0.015}, row: pair{1.4, 0.9}},
	"Table":             {start: pair{0, 26}, Codes: pair{0.0155, 0.0155}},
	"Convert":           {start: pair{0, 40}, Element: pair{0.27, 0.07}, Codes: pair{0.04, 0.045}},
	convertTo8:          {start: pair{0, 38}, Codes: pair{0.04, 0.127}},
	convertRowsTo8:      {start: pair{9, 55}, Codes: pair{0.13, 0.25}, row: pair{20, 30}},

	"Add":                  {start: pair{0, 26}, Element: pair{0.11, 0.11}, Codes: pair{0.14, 0.3}, row: pair{2, 2}},
	"Subtract":             {start: pair{0, 26}, Element: pair{0.11, 0.11}, Codes: pair{0.14, 0.3}, row: pair{2, 2}},
	"Multiply":             {start: pair{0, 26}, Element: pair{0.11, 0.11}, Codes: pair{0.195, 0.3}, row: pair{2, 2}},
	"Div":                  {start: pair{0, 26}, Element: pair{0.11, 0.11}, row: pair{2, 2}},
	"Maximum":              {start: pair{0, 26}, Element: pair{0.11, 0.11}, row: pair{2, 2}},
	"Minimum":              {start: pair{0, 26}, Element: pair{0.11, 0.11}, row: pair{2, 2}},
	"PReLU":                {start: pair{0, 26}, Element: pair{0.11, 0.11}, row: pair{2, 2}},
	"Clamp":                {start: pair{0, 14}, Element: pair{0.073, 0.073}, Codes: pair{0.0145, 0.0155}},
	"Hardswish":            {start: pair{0, 14}, Element: pair{0.074, 0.115}},
	"SquareRoot":           {start: pair{0, 14}, Element: pair{0.122, 0.17}},
	"ReciprocalSquareRoot": {start: pair{0, 14}, Element: pair{0.09, 0.285}},
	"Sigmoid":              {start: pair{3, 14}, Element: pair{0.19, 0.215}, Codes: pair{0.09, 0.0155}},
	"SiLU":                 {start: pair{3, 14}, Element: pair{0.3, 0.225}},
	"Tanh":                 {start: pair{3, 16}, Element: pair{0.24, 0.275}, Codes: pair{0.09, 0.0155}},
	"Log":                  {start: pair{0, 20}, Element: pair{0.24, 0.63}},
	"Gelu":                 {start: pair{0, 16}, Element: pair{0.31, 0.38}},
	"ELU":                  {start: pair{0, 20}, Element: pair{0.27, 0.48}},
	"Exp":                  {start: pair{0, 16}, Element: pair{2.1, 0.38}},
	"Sin":                  {start: pair{0, 66}, Element: pair{2.6, 0.43}},
	"Cos":                  {start: pair{0, 66}, Element: pair{2.6, 0.43}},
}

var rateOfOthers = rate{start: pair{0, 14}, Element: pair{0.074, 0.073}}
