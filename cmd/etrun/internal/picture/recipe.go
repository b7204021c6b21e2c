// Package picture converts PNG and JPEG files to image inputs like torchvision's usual
// pipeline: turn upright, resize, center crop, scale to 0…1, normalize, transpose.
package picture

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
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

// Recipe is the conversion of an image to an input. The zero recipe scales to 0…1. It resizes to cover the
// input's height and width and crops the center; for an input of dynamic sizes, it keeps the image's size if the program accepts it.
type Recipe struct {
	Short     int       // scale the shorter side to this, keeping the aspect ratio; 0: use Height and Width
	Height    int       // scale to exactly Height by Width; 0: to cover the input
	Width     int       //
	CropH     int       // then center crop; 0: size of the input
	CropW     int       //
	Mean, Std []float32 // per channel, or one for all; of samples in 0…1
	Layout    Layout    // empty is Auto
	Stored    bool      // ignore the EXIF orientation
}

// ErrRecipe is the class of errors in a recipe's text.
var ErrRecipe = errors.New("picture recipe")

var presets = map[string]map[string][]float32{
	"imagenet": {"mean": {0.485, 0.456, 0.406}, "std": {0.229, 0.224, 0.225}},
}

// ParseRecipe parses "size=224,mean=0.485,0.456,0.406,std=imagenet,layout=auto,orientation=exif". size, or
// resize, is the shorter side or HxW, crop a side or HxW; a value without a key continues
// the list before it.
func ParseRecipe(text string) (Recipe, error) {
	var r Recipe
	for _, option := range options(text) {
		key, values := option[0], option[1:]
		if err := r.set(key, values); err != nil {
			return Recipe{}, fmt.Errorf("%w: %s=%s: %w", ErrRecipe, key, strings.Join(values, ","), err)
		}
	}
	return r, nil
}

// options splits the text into keys with their values.
func options(text string) (all [][]string) {
	for field := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(field, "=")
		switch {
		case found:
			all = append(all, []string{key, value})
		case len(all) > 0:
			all[len(all)-1] = append(all[len(all)-1], field)
		default:
			all = append(all, []string{field})
		}
	}
	return all
}

func (r *Recipe) set(key string, values []string) (err error) {
	if len(values) != 1 && key != "mean" && key != "std" {
		return errors.New("want one value")
	}
	switch key {
	case "size", "resize":
		return r.setSize(values[0])
	case "crop":
		if r.CropH, r.CropW, err = sides(values[0]); r.CropW == 0 {
			r.CropW = r.CropH
		}
	case "layout":
		r.Layout = Layout(values[0])
		if r.Layout != Auto && r.Layout != NCHW && r.Layout != NHWC {
			return errors.New("want auto, nchw or nhwc")
		}
	case "orientation":
		r.Stored = values[0] == "stored"
		if !r.Stored && values[0] != "exif" {
			return errors.New("want exif or stored")
		}
	case "mean":
		r.Mean, err = channelValues(key, values)
	case "std":
		if r.Std, err = channelValues(key, values); err == nil {
			err = notZero(r.Std)
		}
	default:
		return fmt.Errorf("unknown key, want one of size (or resize), crop, mean, std, layout, orientation%s",
			nearest.Hint(key, []string{"size", "resize", "crop", "mean", "std", "layout", "orientation"}))
	}
	return err
}

func (r *Recipe) setSize(text string) error {
	h, w, err := sides(text)
	if err == nil && w == 0 {
		r.Short = h
	} else if err == nil {
		r.Height, r.Width = h, w
	}
	return err
}

// sides parses a side, or HxW; w is 0 for a single side.
func sides(text string) (h, w int, err error) {
	const maxSide = 1 << 15
	height, width, both := strings.Cut(text, "x")
	if h, err = strconv.Atoi(height); err == nil && both {
		w, err = strconv.Atoi(width)
	}
	if err != nil || h < 1 || h > maxSide || w < 0 || w > maxSide || both && w == 0 {
		return 0, 0, fmt.Errorf("want a side or HxW, each 1 to %d", maxSide)
	}
	return h, w, nil
}

func channelValues(key string, values []string) ([]float32, error) {
	if preset, ok := presets[strings.Join(values, ",")]; ok {
		return preset[key], nil
	}
	list := make([]float32, len(values))
	for i, v := range values {
		f, err := strconv.ParseFloat(v, 32)
		if err != nil {
			return nil, errors.New("want numbers, one for all channels or one each, or imagenet")
		}
		list[i] = float32(f)
	}
	return list, nil
}

func notZero(list []float32) error {
	for _, v := range list {
		if v == 0 {
			return errors.New("a standard deviation of 0")
		}
	}
	return nil
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
