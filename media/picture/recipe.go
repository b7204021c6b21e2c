// Package picture, which has no compatibility promise yet, converts PNG and JPEG files to image inputs like torchvision's usual
// pipeline: turn upright, resize, center crop, scale to 0…1, normalize, transpose.
package picture

import (
	"errors"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Layout is the position of a tensor's channels, in logical order.
type Layout string

// Layouts. They are independent of the memory order (dim order) of the tensor.
const (
	Auto Layout = "auto" // by the shape
	NCHW Layout = "nchw"
	NHWC Layout = "nhwc"
)

// Recipe is the conversion of an image to an input. The zero recipe scales samples to 0…1. It resizes to cover the
// input's height and width and crops the center; for an input of dynamic sizes, it keeps the image's size if the program accepts it.
type Recipe struct {
	Short     int  // scale the shorter side to this, keeping the aspect ratio; 0: use Long, Height and Width
	Long      int  // scale the longer side to this, keeping the aspect ratio
	Height    int  // scale to exactly Height by Width; 0: to cover the input
	Width     int  //
	Letterbox bool // scale to fit into the input, keeping the aspect ratio, and pad both sides
	Corner    bool // pad below and at the right only
	Pad       byte // sample of the padding
	Multiple  int  // then truncate both sides of the scaled size to multiples of this; 0: 1
	Filter    Filter
	CropH     int       // then center crop; 0: size of the input
	CropW     int       //
	Scale     float64   // factor of samples; 0: 1/255
	Mean, Std []float32 // per channel, or one for all; of scaled samples
	BGR       bool      // the channels are blue, green, red
	Layout    Layout    // empty is Auto
	Stored    bool      // ignore the EXIF orientation
}

// Want is the input that an image is converted to.
type Want struct {
	DType   tensor.DType
	Sizes   []int // upper bounds if Dynamic
	Dynamic bool
	Limit   int64 // maximum bytes of the tensor and its conversion
	Attempt int   // of sizes that the program may accept, if Dynamic; the first is 0
}

// ErrShape is the class of images that do not fit their input.
var ErrShape = errors.New("picture does not fit")

// frame is the meaning of an input's dimensions; -1 for a missing one.
type frame struct {
	n, c, h, w    int
	channels      int
	layout        Layout
	height, width int // of the input; upper bounds if dynamic
}
