package input

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/picture"
)

func TestParse(t *testing.T) {
	f32 := func(sizes ...int) *Shape { return &Shape{DType: tensor.Float32, Sizes: append([]int{}, sizes...)} }
	cases := []struct {
		text string
		want Spec
	}{
		{"x.bin", Spec{Path: "x.bin"}},
		{"x.bin:float32:1x3x224x224", Spec{Path: "x.bin", Shape: f32(1, 3, 224, 224)}},
		{"x.bin:float32:scalar", Spec{Path: "x.bin", Shape: f32()}},
		{"x.bin:float32:0x3", Spec{Path: "x.bin", Shape: f32(0, 3)}},
		{"a:b.bin", Spec{Path: "a:b.bin"}},
		{"a:b/c:7", Spec{Path: "a:b/c:7", Shape: nil}},
		{"dir:x/y.bin:float32:3", Spec{Path: "dir:x/y.bin", Shape: f32(3)}},
		{`C:\x.bin`, Spec{Path: `C:\x.bin`}},
		{"0=x.bin", Spec{Input: "0", Path: "x.bin"}},
		{"tokens=x.bin:float32:3", Spec{Input: "tokens", Path: "x.bin", Shape: f32(3)}},
		{"./a=b.bin", Spec{Path: "./a=b.bin"}},
		{"1=./a=b.bin", Spec{Input: "1", Path: "./a=b.bin"}},
		{"x.npy", Spec{Source: Array, Path: "x.npy"}},
		{"X.NPY:float32:2", Spec{Source: Array, Path: "X.NPY", Shape: f32(2)}},
		{"x.npz", Spec{Source: Archive, Path: "x.npz"}},
		{"cat.png", Spec{Source: Picture, Path: "cat.png"}},
		{"cat.JPEG:size=224,layout=nhwc", Spec{Source: Picture, Path: "cat.JPEG", Recipe: picture.Recipe{Short: 224, Layout: picture.NHWC}}},
		{"a.png:b.jpg", Spec{Source: Picture, Path: "a.png:b.jpg"}},
		{"int:-5", Spec{Source: Scalar, Value: tensor.IntValue(-5)}},
		{"0=int:5", Spec{Input: "0", Source: Scalar, Value: tensor.IntValue(5)}},
		{"float:1e+20", Spec{Source: Scalar, Value: tensor.DoubleValue(1e20)}},
		{"bool:true", Spec{Source: Scalar, Value: tensor.BoolValue(true)}},
		{"str:", Spec{Source: Scalar, Value: tensor.StringValue("")}},
		{"str:a=b:c", Spec{Source: Scalar, Value: tensor.StringValue("a=b:c")}},
		{"none", Spec{Source: Scalar}},
		{"zeros", Spec{Source: Fill, Fill: "zeros"}},
		{"ones:float32:2x2", Spec{Source: Fill, Fill: "ones", Shape: f32(2, 2)}},
		{"rand", Spec{Source: Fill, Fill: "rand"}},
		{"./zeros", Spec{Path: "./zeros"}},
		{"integer", Spec{Path: "integer"}},
	}
	for _, c := range cases {
		c.want.Text = c.text
		got, err := Parse(c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, %v, want %+v", c.text, got, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	cases := []struct{ text, want string }{
		{"", "want a file or a value"},
		{"0=", "want a file or a value"},
		{"x.bin:floaty:1x3", `dtype "floaty"`},
		{"x.bin:floot32:1x3", `unknown dtype "floot32"; did you mean float32?`},
		{"zeros:unit8:4", "did you mean uint8?"},
		{"x.bin:complexes128x:4", "did you mean complex128?"},
		{"x.bin:float32:99999999999999999999", "size"},
		{"x.bin:float32:9223372036854775807x3", "too large"},
		{"x.bin:float32:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", "rank 17"},
		{"int:five", `"five": invalid syntax`},
		{"int:99999999999999999999", "out of range"},
		{"float:x", "invalid syntax"},
		{"bool:maybe", "invalid syntax"},
		{"zeros:", "zeros:dtype:shape, such as"},
		{"zeros:float32", "such as zeros:float32:1x3"},
		{"ones:x:float32:3", "ones:dtype:shape, such as"},
		{"x.npz:float32:3", "archive"},
		{"cat.png:size=big", "size=big"},
		{"cat.png:", "picture recipe"},
		{"cat.png:color=red", "want one of size"},
	}
	for _, c := range cases {
		if got, err := Parse(c.text); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %+v, %v, want an error with %q", c.text, got, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0=x.bin:float32:1x3", "cat.png:size=224,mean=0.5,std=0.1,0.2,0.3", "int:5", "x.npz", "zeros:bool:scalar"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSpec) {
				t.Fatalf("%q: %v is no %v", text, err, ErrSpec)
			}
			return
		}
		if s.Source != Scalar && s.Source != Fill && s.Path == "" {
			t.Fatalf("%q: neither a file nor a value", text)
		}
		if s.Shape != nil {
			sizes, err := parseSizes(tensor.FormatSizes(s.Shape.Sizes))
			if err != nil || !reflect.DeepEqual(sizes, s.Shape.Sizes) {
				t.Fatalf("%q: sizes %v read back as %v, %v", text, s.Shape.Sizes, sizes, err)
			}
		}
	})
}
