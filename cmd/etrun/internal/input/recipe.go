package input

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/media/picture"
)

// errRecipe is the class of errors in a recipe's text.
var errRecipe = errors.New("picture recipe")

var presets = map[string]map[string][]float32{
	"imagenet": {"mean": {0.485, 0.456, 0.406}, "std": {0.229, 0.224, 0.225}},
}

// recipeKeys are the keys of recipes of pictures.
var recipeKeys = []string{"size", "resize", "long", "letterbox", "pad", "multiple", "filter", "crop", "scale", "mean", "std", "order", "layout",
	"orientation"}

// parseRecipe parses "size=224,mean=0.485,0.456,0.406,std=imagenet,layout=auto,orientation=exif". size, or resize, is the shorter side or
// HxW, long the longer one, letterbox the sample of the padding, pad likewise below and at the right only, multiple what divides
// both sides, filter how sizes change, crop a side or HxW, scale the factor of samples, order rgb or bgr; a value without a key continues the list before it.
func parseRecipe(text string) (picture.Recipe, error) {
	var r picture.Recipe
	for _, option := range options(text) {
		key, values := option[0], option[1:]
		if err := setRecipe(&r, key, values); err != nil {
			return picture.Recipe{}, fmt.Errorf("%w: %s=%s: %w", errRecipe, key, strings.Join(values, ","), err)
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

func setRecipe(r *picture.Recipe, key string, values []string) (err error) {
	if len(values) != 1 && key != "mean" && key != "std" {
		return errors.New("want one value")
	}
	switch key {
	case "size", "resize":
		return setSize(r, values[0])
	case "crop":
		if r.CropH, r.CropW, err = sides(values[0]); r.CropW == 0 {
			r.CropW = r.CropH
		}
	case "long":
		r.Long, err = number(values[0], maxSide)
	case "multiple":
		r.Multiple, err = number(values[0], maxSide)
	case "letterbox", "pad":
		n := 0
		n, err = number(values[0], 255)
		r.Letterbox, r.Pad, r.Corner = true, byte(n), key == "pad"
	case "filter":
		filter, ok := picture.FilterNamed(values[0])
		if r.Filter = filter; !ok {
			return errors.New("want bilinear, nearest, lanczos, bicubic, box or hamming")
		}
	case "scale":
		if r.Scale, err = strconv.ParseFloat(values[0], 64); err != nil || !(r.Scale > 0 && r.Scale <= 1e6) {
			return errors.New("want a positive number, such as 1 for samples from 0 to 255")
		}
	case "order":
		if r.BGR = values[0] == "bgr"; !r.BGR && values[0] != "rgb" {
			return errors.New("want rgb or bgr")
		}
	case "layout":
		r.Layout = picture.Layout(values[0])
		if r.Layout != picture.Auto && r.Layout != picture.NCHW && r.Layout != picture.NHWC {
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
		return fmt.Errorf("unknown key, want one of %s%s", strings.Join(recipeKeys, ", "), nearest.Hint(key, recipeKeys))
	}
	return err
}

func setSize(r *picture.Recipe, text string) error {
	h, w, err := sides(text)
	if err == nil && w == 0 {
		r.Short = h
	} else if err == nil {
		r.Height, r.Width = h, w
	}
	return err
}

// maxSide bounds sides.
const maxSide = 1 << 15

// number parses a number from 0 to most.
func number(text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("want a number from 0 to %d", most)
	}
	return n, nil
}

// sides parses a side, or HxW; w is 0 for a single side.
func sides(text string) (h, w int, err error) {
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
