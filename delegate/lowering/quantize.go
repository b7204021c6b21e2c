package lowering

import (
	"context"

	"github.com/etrun-go/etrun/delegate"
)

// Scheme is how the layers of payloads are quantized.
type Scheme struct {
	Name     SchemeName
	All      bool     // for Dynamic8: also convolutions that lose more than others
	Group    int      // input channels that share a scale of 4 bits
	Observer Observer // how ranges are found, for static quantization: ObserveMSE by default
}

// SchemeName identifies a scheme.
type SchemeName string

// The schemes.
const (
	Dynamic8 SchemeName = "dq8"   // 8-bit weights per channel; inputs are quantized at run time, row by row
	Dynamic4 SchemeName = "8da4w" // 4-bit weights in groups; inputs as before
	Static8  SchemeName = "q8"    // 8-bit weights per channel, and values of ranges that were observed
	Weights8 SchemeName = "w8"    // 8-bit weights per channel alone
	Auto     SchemeName = "auto"  // each layer has another one
)

// SchemeNames lists the schemes.
var SchemeNames = []SchemeName{Dynamic8, Dynamic4, Static8, Weights8, Auto}

// Forms is the scheme of each layer, by its index; "" leaves it as it is, and so does a scheme that the layer cannot have.
type Forms func(layer int) SchemeName

// FewTerms is the number of terms of a sum of products below which all of them may be 0 in steps of 8 bits, if the factors are small.
const FewTerms = 16

// Observer is how the range of a value is found from its elements.
type Observer string

// The observers.
const (
	ObserveMSE        Observer = "mse"        // the least squared error
	ObserveMinMax     Observer = "minmax"     // all elements
	ObservePercentile Observer = "percentile" // all but one in 20,000 on each side
	// ObserveBest is for each value the observer with which the layers that use it had the least error when they were measured.
	ObserveBest Observer = "best"
)

// Observers lists the observers.
var Observers = []Observer{ObserveMSE, ObserveMinMax, ObservePercentile}

// Quantizer is implemented by writers of payloads that can be quantized.
type Quantizer interface {
	delegate.Backend
	// OpenFloats reads a payload. An error is the reason why it cannot be quantized.
	OpenFloats(p *delegate.Payload, s Scheme) (Floats, error)
}

// Floats is a payload of floats that is to be quantized. Its images may be executed while no other method is called.
type Floats interface {
	// Layers lists what is quantized, in order.
	Layers() []Layer
	// Divisors leaves the layers as they are that compute divisors, of which small ones would be 0. is reports whether other calls divide by
	// an argument of the payload's, an output. It returns the inputs that are divided by.
	Divisors(is func(arg int) bool) []int
	// Calibrate returns an image that also records the ranges of values.
	Calibrate(ctx context.Context, p *delegate.Payload) (delegate.Image, error)
	// Measure returns an image that also computes each layer from quantized operands, in its first form, and records the difference.
	Measure(ctx context.Context, p *delegate.Payload) (delegate.Image, error)
	// Set changes what follows: how ranges are found, and whether biases are corrected by the mean errors of their layers. Both are what
	// images of Measure recorded with the same observer.
	Set(o Observer, corrected bool)
	// Try returns an image with the layers quantized as Write does.
	Try(ctx context.Context, p *delegate.Payload, forms Forms) (delegate.Image, error)
	// Write returns the payload with quantized layers, nil if there are none.
	Write(forms Forms) (*Quantized, error)
}

// Layer is a node of a payload.
type Layer struct {
	Node   int          // index in the payload
	Type   string       // of the node
	Sizes  []int        // of its weights, nil for none
	Forms  []SchemeName // that it may have, the fastest first
	Reason string       // why it stays as it is, "" if it is quantized
	// Products and Moved are the multiplications of its weights, and the elements of its operands and its result.
	Products, Moved float64
	// Signal and Noise are the sums of squares of its results and of their errors, on inputs of floats. Both
	// are 0 if they were not measured.
	Signal, Noise float64
}

// Quantized is a quantized payload.
type Quantized struct {
	*Written
	OldInputs int            // the number of inputs of the original payload
	Inputs    []int          // those that it still has, in order
	Quantized []int          // layers that are quantized
	Left      map[int]string // why others stay that could be quantized, by layer
}
