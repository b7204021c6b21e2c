package input

import (
	"errors"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/media/picture"
)

func TestParseRecipe(t *testing.T) {
	r, err := parseRecipe("size=224x320,mean=0.5,std=0.1,0.2,0.3,layout=nhwc")
	if err != nil {
		t.Fatal(err)
	}
	if r.Height != 224 || r.Width != 320 || !slices.Equal(r.Mean, []float32{0.5}) || !slices.Equal(r.Std, []float32{0.1, 0.2, 0.3}) || r.Layout != picture.NHWC {
		t.Errorf("got %+v", r)
	}
	if r, err = parseRecipe("resize=256,crop=224"); err != nil || r.Short != 256 || r.CropH != 224 || r.CropW != 224 {
		t.Errorf("got %+v, %v", r, err)
	}
	r, err = parseRecipe("letterbox=114,multiple=32,filter=bicubic,order=bgr,scale=1")
	if err != nil || !r.Letterbox || r.Pad != 114 || r.Multiple != 32 || r.Filter != picture.Bicubic || !r.BGR || r.Scale != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, text := range []string{"letterbox=256", "filter=sharp", "order=grb", "scale=0", "scale=NaN", "multiple=-1", "long=x", "", "crop=0", "crop=3x0", "resize=-1", "size", "size=0", "size=3x", "size=3x4x5", "size=99999", "size=1,2",
		"mean=a", "std=0", "layout=chw", "color=red", "orientation=6", "224"} {
		if _, err := parseRecipe(text); !errors.Is(err, errRecipe) {
			t.Errorf("%q: got %v, want %v", text, err, errRecipe)
		}
	}
}
