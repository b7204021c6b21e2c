package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// pictureProgram writes a program of one call, whose input is a picture of up to 64×256 pixels. Its operator decides which sizes it
// accepts.
func pictureProgram(t *testing.T, name string) string {
	t.Helper()
	const x, out, other, one, eight = 0, 1, 2, 3, 4
	tensorOf := func(sizes ...int) pte.Value {
		s := pte.Tensor{DType: tensor.Float32, Sizes: sizes, DimOrder: []uint8{0, 1, 2, 3}, Dynamism: tensor.DynamicBound, Storage: pte.Unplanned}
		return pte.Value{Kind: tensor.KindTensor, Tensor: &s}
	}
	constant := func(h, w int) pte.Value {
		v := tensorOf(1, 1, h, w)
		v.Tensor.Dynamism, v.Tensor.Storage, v.Tensor.Data = tensor.Static, pte.Constant, make([]byte, 4*h*w)
		return v
	}
	m := pte.Method{Name: "forward", Inputs: []int{x}, Outputs: []int{out}, Operators: []pte.Operator{{Name: "aten::add", Overload: "out"}},
		Values: []pte.Value{tensorOf(1, 3, 64, 256), tensorOf(1, 3, 64, 256), constant(1, 1), {Kind: tensor.KindInt, Int: 1}, {Kind: tensor.KindInt, Int: 8}}}
	args := []int{x, other, one, out, out}
	switch name {
	case "lines": // of the largest height
		m.Values[other] = constant(64, 1)
	case "columns":
		m.Values[other] = constant(1, 256)
	case "largest":
		m.Values[other] = constant(64, 256)
	case "none":
		m.Values[other] = constant(63, 255)
	case "batch":
		m.Values[x], m.Values[out] = tensorOf(4, 3, 64, 256), tensorOf(4, 3, 64, 256)
	case "eighths":
		m.Operators[0] = pte.Operator{Name: "aten::pixel_unshuffle", Overload: "out"}
		m.Values[out] = tensorOf(1, 192, 8, 32)
		args = []int{x, eight, out, out}
	case "state":
		m.Values[other] = constant(64, 1)
		m.Values[other].Tensor.Storage, m.Values[other].Tensor.Name = pte.PlannedInit, "state"
		m.Arenas = []pte.Arena{{Size: 256}}
	}
	calls := []pte.Instruction{{Kind: pte.KernelCall, Args: args}}
	if name == "state" {
		m.Operators = append(m.Operators, pte.Operator{Name: "aten::copy_"})
		m.Values = append(m.Values, constant(64, 1), pte.Value{Kind: tensor.KindBool})
		calls = append(calls, pte.Instruction{Kind: pte.KernelCall, Index: 1, Args: []int{other, eight + 1, eight + 2, other}})
	}
	m.Chains = []pte.Chain{{Instructions: calls}}
	path := filepath.Join(t.TempDir(), name+".pte")
	write(t, path, ptetest.Write(&pte.Program{Methods: []pte.Method{m}}, ptetest.Layout{}))
	return path
}

// picture writes a PNG file.
func picture(t *testing.T, w, h int) string {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = color.Gray{Y: uint8(i)}.Y
	}
	var b bytes.Buffer
	must(t, png.Encode(&b, img))
	path := filepath.Join(t.TempDir(), fmt.Sprintf("%dx%d.png", w, h))
	write(t, path, b.Bytes())
	return path
}

// A picture for a program of dynamic sizes has the size nearest to its own that the program accepts.
func TestPictureSizes(t *testing.T) {
	for _, c := range []struct {
		program string
		w, h    int
		options string
		sizes   []int
		stderr  string // without --quiet
		quiet   string // with
	}{
		{"any", 200, 50, "", []int{1, 3, 50, 200}, "200×50 pixels, scaled to 0…1", ""},
		{"any", 1, 1, "", []int{1, 3, 1, 1}, "", ""},
		{"any", 512, 96, "", []int{1, 3, 48, 256}, "512×96 pixels, resized to 256×48", ""},
		{"any", 100, 128, "", []int{1, 3, 64, 50}, "resized to 50×64", ""},
		{"any", 2000, 1, "", []int{1, 3, 1, 256}, "", "1744 of 2000 columns are cut off"},
		{"any", 3, 40, "", []int{1, 3, 40, 3}, "", ""},
		{"any", 200, 50, ":resize=100", []int{1, 3, 64, 256}, "center cropped to 256×64", "72 of 200 columns and 18 of 50 rows are cut off"},
		{"any", 200, 50, ":resize=32x64", []int{1, 3, 32, 64}, "resized to 64×32", ""},
		{"any", 200, 50, ":crop=40x60", []int{1, 3, 40, 60}, "center cropped to 60×40", ""},
		{"eighths", 200, 50, "", []int{1, 192, 6, 24}, "resized to 192×48", ""},
		{"eighths", 203, 3, "", []int{1, 192, 1, 32}, "resized to 541×8, center cropped to 256×8", "107 of 203 columns"},
		{"eighths", 11, 13, "", []int{1, 192, 2, 2}, "resized to 16×16", ""},
		{"eighths", 3, 40, "", []int{1, 192, 8, 1}, "resized to 8×106, center cropped to 8×64", "16 of 40 rows are cut off"},
		{"eighths", 300, 70, "", []int{1, 192, 8, 32}, "resized to 256×64", ""},
		{"lines", 200, 50, "", []int{1, 3, 64, 256}, "resized to 256×64", ""},
		{"lines", 100, 50, "", []int{1, 3, 64, 128}, "resized to 128×64", ""},
		{"lines", 100, 20, "", []int{1, 3, 64, 256}, "resized to 256×64", ""},
		{"lines", 100, 15, "", []int{1, 3, 64, 256}, "resized to 426×64, center cropped to 256×64", "40 of 100 columns are cut off; resize=HxW"},
		{"columns", 100, 20, "", []int{1, 3, 51, 256}, "resized to 256×51", ""},
		{"columns", 100, 50, "", []int{1, 3, 64, 256}, "center cropped to 256×64", "25 of 50 rows are cut off"},
		{"largest", 100, 20, "", []int{1, 3, 64, 256}, "resized to 256×64", ""},
		{"batch", 30, 20, "", []int{1, 3, 64, 256}, "center cropped to 256×64", "12 of 20 rows are cut off"},
		{"largest", 30, 20, "", []int{1, 3, 64, 256}, "center cropped to 256×64", "12 of 20 rows are cut off"},
	} {
		program, file := pictureProgram(t, c.program), picture(t, c.w, c.h)
		for _, quiet := range []bool{false, true} {
			args := []string{"run", program, "--json", "--input", file + c.options}
			if quiet {
				args = append(args, "--quiet")
			}
			var out, notes bytes.Buffer
			code := run(args, strings.NewReader(""), &out, &notes)
			var r runReport
			_ = json.Unmarshal(out.Bytes(), &r)
			name := fmt.Sprintf("%s, %d×%d%s, quiet %v", c.program, c.w, c.h, c.options, quiet)
			if code != 0 || !slices.Equal(r.Calls[0].Outputs[0].Shape, c.sizes) {
				t.Errorf("%s: exit code %d, %s%s, want sizes %v", name, code, out.String(), notes.String(), c.sizes)
				continue
			}
			if said := notes.String(); !strings.Contains(said, c.quiet) || (c.quiet != "") != strings.Contains(said, "warning") ||
				!quiet && !strings.Contains(said, c.stderr) || quiet && (said != "") != (c.quiet != "") {
				t.Errorf("%s: said %q, want %q and %q", name, said, c.stderr, c.quiet)
			}
		}
	}
}

// Without a size that runs, the error is that of the nearest; runs that may change state are not repeated.
func TestPictureWithoutSize(t *testing.T) {
	for program, want := range map[string]string{"none": "nor does it run with other sizes of the picture", "state": "add"} {
		var out, notes bytes.Buffer
		code := run([]string{"run", pictureProgram(t, program), "--input", picture(t, 100, 50)}, strings.NewReader(""), &out, &notes)
		if said := notes.String(); code == 0 || !strings.Contains(said, want) || !strings.Contains(said, "50") {
			t.Errorf("%s: exit code %d, %s", program, code, said)
		}
	}
}

// Lines of --jsonl begin with the last size that was accepted, and have their warnings in their reports.
func TestPictureLines(t *testing.T) {
	program := pictureProgram(t, "lines")
	lines := fmt.Sprintf("%q\n%q\n", picture(t, 100, 50), picture(t, 100, 15))
	var out, notes bytes.Buffer
	if code := run([]string{"run", program, "--jsonl"}, strings.NewReader(lines), &out, &notes); code != 0 {
		t.Fatalf("exit code %d, %s", code, notes.String())
	}
	for i, warned := range []bool{false, true} {
		var r lineReport
		line, err := out.ReadBytes('\n')
		must(t, err)
		must(t, json.Unmarshal(line, &r))
		if len(r.Warnings) > 0 != warned || warned && !strings.Contains(r.Warnings[0], "40 of 100 columns are cut off") {
			t.Errorf("line %d: warnings %q", i+1, r.Warnings)
		}
	}
}

// A run that fails may have changed state: the lines after it are not run, unless each begins from the initial state.
func TestRunLinesLoseState(t *testing.T) {
	program := pictureProgram(t, "state")
	const lines = "\"ones:1x3x64x8\"\n\"ones:1x3x50x8\"\n\"ones:1x3x64x8\"\n"
	for reports, flags := range map[int][]string{2: nil, 3: {"--reset"}} {
		var out, notes bytes.Buffer
		code := run(append([]string{"run", program, "--jsonl"}, flags...), strings.NewReader(lines), &out, &notes)
		if n := strings.Count(out.String(), "etrun.run.line/1"); code == 0 || n != reports ||
			strings.Contains(notes.String(), "are not run (--reset") != (flags == nil) {
			t.Errorf("%v: exit code %d, %d lines, want %d; %s", flags, code, n, reports, notes.String())
		}
	}
}
