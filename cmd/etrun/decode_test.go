package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// sumProgram writes a program whose output is the sum of two inputs.
func sumProgram(t *testing.T, sizes ...int) string {
	t.Helper()
	return program(t, []int{0, 1}, sizes)
}

// program writes a program that adds its inputs, of 0 and 1: of values of the same sizes, the second of which is zero if it is no input.
func program(t *testing.T, inputs, sizes []int) string {
	t.Helper()
	value := func() pte.Value {
		s := pte.Tensor{DType: tensor.Float32, Sizes: sizes, DimOrder: []uint8{0, 1, 2, 3}[:len(sizes)], Storage: pte.Unplanned}
		return pte.Value{Kind: tensor.KindTensor, Tensor: &s}
	}
	m := pte.Method{Name: "forward", Inputs: inputs, Outputs: []int{2}, Operators: []pte.Operator{{Name: "aten::add", Overload: "out"}},
		Values: []pte.Value{value(), value(), value(), {Kind: tensor.KindInt, Int: 1}},
		Chains: []pte.Chain{{Instructions: []pte.Instruction{{Kind: pte.KernelCall, Args: []int{0, 1, 3, 2, 2}}}}}}
	if len(inputs) == 1 {
		m.Values[1].Tensor.Storage, m.Values[1].Tensor.Data = pte.Constant, make([]byte, tensor.Float32.Size()*elements(sizes))
	}
	path := filepath.Join(t.TempDir(), "sum.pte")
	write(t, path, ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{}))
	return path
}

// TestFrames runs a program on the parts of a recording, and feeds its output to the next one.
func TestFrames(t *testing.T) {
	var b bytes.Buffer
	must(t, sound.WriteWave(&b, 8, []float32{0.25, 0.5, -0.25, 0, 0.5}))
	wave := filepath.Join(t.TempDir(), "x.wav")
	write(t, wave, b.Bytes())
	program := sumProgram(t, 1, 2)
	for _, c := range []struct {
		args string
		want string // the output, or a part of the message
	}{
		{":frame=2 -i zeros", "[[[0.25,0.5]],[[-0.25,0]],[[0.5,0]]]"},
		{":frame=2,hop=1 -i zeros", "[[[0.25,0.5]],[[0.5,-0.25]],[[-0.25,0]],[[0,0.5]]]"},
		{":frame=2,pad=1 -i zeros", "[[[0,0.25]],[[0.5,-0.25]],[[0,0.5]]]"},
		{":frame=2 --feed 0=1", "[[[0.25,0.5]],[[0,0.5]],[[0.5,0.5]]]"},
		{":frame=2 -i ones --feed 0=1", "[[[1.25,1.5]],[[1,1.5]],[[1.5,1.5]]]"},
		{":frame=2 -i ones --feed 0=1 --repeat 3", "[[[1.25,1.5]],[[1,1.5]],[[1.5,1.5]]]"},
		{":frame=3 -i zeros", "3 samples, want float32 1x2"},
		{":hop=3 -i zeros", "set frame=N, too"},
		{":frame=2,pad=3 -i zeros", "pad is above frame"},
		{":frame=0 -i zeros", "want a number of samples"},
		{":frame=2 -i " + wave + ":frame=2", "a second recording in frames"},
		{":frame=2 --feed 1=1", `method "forward" has 1 outputs and 2 inputs`},
		{":frame=2 --feed 0=1 --feed 0=1", "input 1 is fed already"},
		{":frame=2 --feed 0", "want OUTPUT=INPUT"},
	} {
		out := filepath.Join(t.TempDir(), "y.json")
		_, notes, code := runCLI(t, program+" -o "+out+" -i "+wave+c.args)
		if code == 0 {
			notes = contents(t, out)
		}
		if !strings.Contains(strings.TrimSpace(notes), c.want) {
			t.Errorf("%s: code %d, got %s, want %s", c.args, code, notes, c.want)
		}
	}
}

// TestFedCalls feeds the output of a call to the next one.
func TestFedCalls(t *testing.T) {
	out := filepath.Join(t.TempDir(), "y.json")
	line := sumProgram(t, 2) + " -i json:[1,2] --next -i json:[10,20] --next -i json:[100,200] --feed 0=1 -o call2_out0=" + out
	if _, notes, code := runCLI(t, line); code != 0 || strings.TrimSpace(contents(t, out)) != "[111,222]" {
		t.Errorf("code %d, got %s, want [111,222]: %s", code, contents(t, out), notes)
	}
}

// TestDecode reads texts, spans and boxes from outputs.
func TestDecode(t *testing.T) {
	symbols, spaced := filepath.Join(t.TempDir(), "symbols.txt"), filepath.Join(t.TempDir(), "spaced.txt")
	write(t, symbols, []byte("a\nb\n"))
	write(t, spaced, []byte("-\na\n \n"))
	for _, c := range []struct {
		sizes  []int
		values string
		args   string
		want   string // decoded, or a part of the message
	}{
		{[]int{1, 4, 3}, "[[[0,1,0],[0,1,0],[1,0,0],[0,1,0]]]", "ctc --labels " + symbols, `[{"text":"aa","score":1}]`},
		{[]int{2, 1, 3}, "[[[0,1,0]],[[0,0,2]]]", "ctc --labels " + symbols, `[{"text":"a","score":1},{"text":"b","score":2}]`},
		{[]int{2, 4}, "[[0,0,0,1],[0,0,1,0]]", "ctc --labels " + symbols, `[{"text":" b","score":1}]`},
		{[]int{2, 3}, "[[0,0,1],[0,1,0]]", "ctc --labels " + spaced, `[{"text":" a","score":1}]`},
		{[]int{2, 3}, "[[0,0,1],[0,1,0]]", "ctc:blank=2 --labels " + symbols, `[{"text":"b","score":1}]`},
		{[]int{2, 3}, "[[0,0,1],[0,1,0]]", "ctc:blank=3 --labels " + symbols, "has 3 classes"},
		{[]int{2, 6}, "zeros", "ctc --labels " + symbols, "2 symbols in the file of --labels"},
		{[]int{3}, "zeros", "ctc --labels " + symbols, "want frames x classes"},
		{[]int{5}, "[0,1,1,0,1]", "spans", `[{"from":1,"to":3,"score":1},{"from":4,"to":5,"score":1}]`},
		{[]int{5}, "[0,1,1,0,1]", "spans:gap=2", `[{"from":1,"to":5,"score":1}]`},
		{[]int{2, 2}, "zeros", "spans", "want a probability for each frame"},
		{[]int{1, 8, 6}, "json", "boxes --labels " + symbols,
			`[{"left":8,"top":18,"right":12,"bottom":22,"score":0.9,"class":1,"label":"b"}]`},
		{[]int{3}, "zeros", "boxes", "want boxes x"},
		{[]int{1, 1, 4, 4}, "[[[[0,0,0,0],[0,1,1,0],[0,1,1,0],[0,0,0,0]]]]", "map:grow=0,least=1",
			`[{"left":1,"top":1,"right":3,"bottom":3,"score":1,"class":0}]`},
		{[]int{2}, "zeros", "0=picture", "want [OUTPUT=]KIND, one of boxes, ctc, map, spans"},
		{[]int{2}, "zeros", "spans:gap=-1", "from 0 to a million"},
		{[]int{2}, "zeros", "1=spans", "no output 1, the method has 1"},
	} {
		if c.values == "json" {
			c.values = "[[" + strings.Repeat("[10,20,4,4,0.1,0.9],", 7) + "[10,20,4,4,0,0]]]"
		}
		if c.values != "zeros" {
			c.values = "json:" + c.values
		}
		out, notes, code := runCLI(t, sumProgram(t, c.sizes...)+" --json -i "+c.values+" -i zeros --decode "+c.args)
		if code != 0 {
			if !strings.Contains(out+notes, c.want) {
				t.Errorf("%v %s: code %d, %s, want %s", c.sizes, c.args, code, notes, c.want)
			}
			continue
		}
		report := struct {
			Calls []struct{ Outputs []struct{ Decoded any } }
		}{}
		must(t, json.Unmarshal([]byte(out), &report))
		var want any
		must(t, json.Unmarshal([]byte(c.want), &want))
		if got := report.Calls[0].Outputs[0].Decoded; !reflect.DeepEqual(got, want) {
			t.Errorf("%v %s: got %v, want %v", c.sizes, c.args, got, want)
		}
	}
	infinite := filepath.Join(t.TempDir(), "x.bin")
	write(t, infinite, tensor.Of([]float32{0, float32(math.Inf(1))}, 2).Data)
	if out, notes, code := runCLI(t, sumProgram(t, 2)+" --json -i "+infinite+" -i zeros --decode spans"); code != 0 || !strings.Contains(out, `"score": "Infinity"`) {
		t.Errorf("an infinite score: code %d: %s%s", code, out, notes)
	}
	shown, _, _ := runCLI(t, sumProgram(t, 5)+" -i json:[0,1,1,0,1] -i zeros --decode spans")
	if !strings.Contains(shown, "output 0, spans: 2\n    frames 1 to 2 (1)\n") {
		t.Errorf("as text: %s", shown)
	}
}

// whitePart writes a picture of 40 x 20 that is black but a part.
func whitePart(t *testing.T, path string) image.Image {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, 40, 20))
	for y := 10; y < 15; y++ {
		for x := 20; x < 30; x++ {
			img.Pix[y*img.Stride+x] = 255
		}
	}
	var b bytes.Buffer
	must(t, png.Encode(&b, img))
	write(t, path, b.Bytes())
	return img
}

// TestEvalBoxes compares the boxes of pictures with those in files beside them.
func TestEvalBoxes(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		whitePart(t, filepath.Join(folder, name+".png"))
	}
	write(t, filepath.Join(folder, "a.txt"), []byte("0 0.625 0.625 0.25 0.25\n"))
	write(t, filepath.Join(folder, "b.txt"), []byte("0 0.2 0.2 0.1 0.1\n\n1 0.625 0.625 0.25 0.25\n")) // c.png has none
	line := "eval " + program(t, []int{0}, []int{1, 1, 20, 20}) + " " + folder + " --options resize=20x20,filter=nearest --decode map:threshold=0.5,grow=0,least=1"
	out, notes, code := runCLI(t, line+" --json")
	var got evalBoxReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("code %d, %v: %s%s", code, err, out, notes)
	}
	want := []boxPrecision{{Class: 0, Precision: 0.5}, {Class: 1}}
	if !slices.Equal(got.Classes, want) || got.Samples != 3 || got.Objects != 3 || got.Found != 3 || got.Right != 1 || got.Mean != 0.25 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if out, _, _ := runCLI(t, line); !strings.Contains(out, "3 pictures: mean average precision 25.0 %") || !strings.Contains(out, "class 0: 50.0 %") {
		t.Errorf("as text: %s", out)
	}
	write(t, filepath.Join(folder, "c.txt"), []byte("0 0.5 0.5 2 1"))
	for args, want := range map[string]string{"": "c.txt: line 1:", " --labels x.csv": "which are in FILE.txt beside each picture"} {
		if _, notes, code := runCLI(t, line+args); code == 0 || !strings.Contains(notes, want) {
			t.Errorf("%s: code %d, got %s, want %s", args, code, notes, want)
		}
	}
}

// TestBoxesOfPictures finds boxes in pixels of the picture, and draws them.
func TestBoxesOfPictures(t *testing.T) {
	path, drawn := filepath.Join(t.TempDir(), "x.png"), filepath.Join(t.TempDir(), "y.png")
	img := whitePart(t, path)
	for _, c := range []struct {
		options string
		want    [4]float32 // left, top, right, bottom
	}{
		{":resize=20x40,filter=nearest", [4]float32{20, 10, 30, 15}}, // center cropped to 20 x 20: columns 10 to 29
		{":letterbox=0,filter=nearest", [4]float32{20, 10, 30, 14}},
		{":pad=0,filter=nearest", [4]float32{20, 10, 30, 14}},
		{":resize=20x20,filter=nearest", [4]float32{20, 10, 30, 15}},
	} {
		line := program(t, []int{0}, []int{1, 1, 20, 20}) + " -i " + path + c.options + " --decode map:threshold=0.5,grow=0,least=1 --json --draw " + drawn
		out, notes, code := runCLI(t, line)
		report := struct {
			Calls []struct {
				Outputs []struct {
					Decoded []struct{ Left, Top, Right, Bottom float32 }
				}
			}
		}{}
		if code != 0 || json.Unmarshal([]byte(out), &report) != nil || len(report.Calls[0].Outputs[0].Decoded) != 1 {
			t.Errorf("%s: code %d: %s%s", c.options, code, out, notes)
			continue
		}
		d := report.Calls[0].Outputs[0].Decoded[0]
		if got := [4]float32{d.Left, d.Top, d.Right, d.Bottom}; got != c.want {
			t.Errorf("%s: got %v, want %v", c.options, got, c.want)
		}
		m, err := png.Decode(strings.NewReader(contents(t, drawn)))
		must(t, err)
		if r, g, _, _ := m.At(int(d.Left), int(d.Bottom)-1).RGBA(); m.Bounds() != img.Bounds() || r>>8 != 230 || g>>8 != 25 {
			t.Errorf("%s: the drawing is %v with %d, %d at the corner", c.options, m.Bounds(), r>>8, g>>8)
		}
	}
	for args, want := range map[string]string{" --draw y.png": "--draw draws what --decode finds", " --decode spans --draw " + drawn: "with one picture"} {
		if _, notes, code := runCLI(t, sumProgram(t, 5)+" -i zeros -i zeros"+args); code != 2 || !strings.Contains(notes, want) {
			t.Errorf("%s: code %d, %s, want %s", args, code, notes, want)
		}
	}
}

// TestEvalTexts compares texts with those of samples.
func TestEvalTexts(t *testing.T) {
	program, folder := program(t, []int{0}, []int{3, 3}), t.TempDir()
	for name, values := range map[string][]float32{"a": {0, .5, 0, 0, 0, .5, 0, .5, 0}, "b": {0, .5, 0, .5, 0, 0, .5, 0, 0}} {
		x := tensor.Of(values, 3, 3)
		write(t, filepath.Join(folder, name+".bin"), x.Data)
	}
	write(t, filepath.Join(folder, "texts.csv"), []byte("file,label\na.bin,aba\nb.bin,ab\n"))
	write(t, filepath.Join(folder, "symbols.txt"), []byte("a\nb\n"))
	line := "eval " + program + " " + folder + " --labels " + folder + "/texts.csv --classes " + folder + "/symbols.txt --decode ctc"
	out, notes, code := runCLI(t, line+" --json")
	var got evalTextReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got.Exact != 1 || got.Edits != 1 || got.Characters != 5 || got.Rate != 0.2 {
		t.Errorf("code %d, %v, got %+v, want an edit of 5 characters: %s", code, err, got, notes)
	}
	if out, _, _ := runCLI(t, line); !strings.Contains(out, "2 texts: 50.0 % without an error, character error rate 20.0 %") || !strings.Contains(out, "b.bin: ab read as a\n") {
		t.Errorf("as text: %s", out)
	}
	if _, notes, code := runCLI(t, line+":blank=0 --decode spans"); code == 0 {
		t.Errorf("two decoders: no error: %s", notes)
	}
}

func elements(sizes []int) int {
	n := 1
	for _, size := range sizes {
		n *= size
	}
	return n
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}
