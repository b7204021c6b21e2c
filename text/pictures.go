package text

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/picture"
)

// openPictures returns the conversion of pictures. Type and size are those of the input. An input of one size gets the picture without
// regard to its aspect ratio, or the center of one whose shorter side is scaled; one of dynamic sizes a picture whose longer side fits, with
// even sides.
func openPictures(in *etrun.ValueMeta, p *processor) (converter, error) {
	recipe, err := pictureRecipe(in, p)
	if err != nil {
		return nil, err
	}
	want := picture.Want{DType: in.DType, Sizes: in.Sizes, Dynamic: in.Dynamism != tensor.Static}
	return func(ctx context.Context, file []byte, limit int64) (*tensor.Tensor, string, error) {
		want := want
		want.Limit = limit
		made, err := picture.Tensor(ctx, file, recipe, want)
		return made.Tensor, made.Applied, err
	}, nil
}

// pictureRecipe returns how pictures are converted.
func pictureRecipe(in *etrun.ValueMeta, p *processor) (r picture.Recipe, err error) {
	n := len(in.Sizes)
	if n != 3 && n != 4 || in.Sizes[n-3] != 3 || n == 4 && in.Sizes[0] != 1 {
		return r, &ConventionError{Kind: "an encoder of a picture", Method: "vision_encoder", Got: "input 0: " + describe(in),
			Want: "one picture of sizes [1, 3, height, width]; pictures in tiles or patches are not supported"}
	}
	h, w := in.Sizes[n-2], in.Sizes[n-1]
	size := p.numbers["size"]
	switch {
	case in.Dynamism != tensor.Static:
		r.Long, r.Multiple = min(h, w), 2
	case p.one("do_center_crop", 0) != 0 && len(size) == 1 && size[0] >= float64(min(h, w)) && size[0] <= maxMetadata:
		r.Short, r.CropH, r.CropW = int(size[0]), h, w
	default:
		r.Height, r.Width = h, w
	}
	resample := p.one("resample", 2)
	filter, ok := picture.PillowFilter(int(resample))
	if !ok {
		return r, &MetadataError{Name: "resample", Got: fmt.Sprint(resample), Want: "the number of a filter of Pillow, 0 to 5"}
	}
	r.Filter = filter
	if !in.DType.IsFloat() {
		return r, nil
	}
	return r, setLevels(&r, p)
}

// setLevels sets the factor of samples, and their mean and deviation.
func setLevels(r *picture.Recipe, p *processor) error {
	r.Scale = p.one("rescale_factor", 0)
	if p.one("do_rescale", 1) == 0 {
		r.Scale = 1
	}
	if p.one("do_normalize", 1) == 0 {
		return nil
	}
	for _, c := range []struct {
		name string
		to   *[]float32
	}{{"image_mean", &r.Mean}, {"image_std", &r.Std}} {
		list := p.numbers[c.name]
		if len(list) != 0 && len(list) != 1 && len(list) != 3 {
			return &MetadataError{Name: c.name, Got: fmt.Sprintf("%d numbers", len(list)), Want: "one for each of 3 channels"}
		}
		for _, v := range list {
			if !(v > -1e6 && v < 1e6) || v == 0 && c.to == &r.Std {
				return &MetadataError{Name: c.name, Got: fmt.Sprint(v), Want: "a number, and not 0 for a deviation"}
			}
			*c.to = append(*c.to, float32(v))
		}
	}
	return nil
}
