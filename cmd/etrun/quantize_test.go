package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/compile/compiletest"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// quantized runs etrun quantize, and returns the exit code and the messages.
func quantized(args ...string) (code int, out, notes string) {
	var o, n bytes.Buffer
	code = run(append([]string{"quantize"}, args...), strings.NewReader(""), &o, &n)
	return code, o.String(), n.String()
}

// digitImages returns the test images of the digits, and their labels.
func digitImages(t *testing.T) (images []float32, labels []byte) {
	b, err := os.ReadFile("../../testdata/digits/images.f32.bin")
	must(t, err)
	labels, err = os.ReadFile("../../testdata/digits/labels.u8.bin")
	must(t, err)
	return tensor.View[float32](b), labels
}

// imageFolder writes the first images as calibration data.
func imageFolder(t *testing.T, images []float32, n int) string {
	dir := t.TempDir()
	for i := range n {
		write(t, filepath.Join(dir, fmt.Sprintf("%02d.bin", i)), tensor.BytesOf(images[64*i:][:64]))
	}
	return dir
}

// rightDigits counts the images that a program classifies as their labels say.
func rightDigits(t *testing.T, path string, images []float32, labels []byte) (n int) {
	p, err := etrun.Open(path, etrun.WithDelegates(all.Backends()...))
	must(t, err)
	defer p.Close()
	m, err := p.Load(context.Background(), "forward")
	must(t, err)
	defer m.Close()
	for i, label := range labels {
		must(t, m.SetValue(0, tensor.TensorValue(tensor.Of(images[64*i:][:64], 1, 1, 8, 8))))
		must(t, m.Execute(context.Background()))
		y, err := m.Output(0)
		must(t, err)
		best, scores := 0, tensor.View[float32](y.Tensor.Data)
		for k, s := range scores {
			if s > scores[best] {
				best = k
			}
		}
		if best == int(label) {
			n++
		}
	}
	return n
}

// readReport returns the report of quantize without its outputs, and the ratio of the first one.
func readReport(t *testing.T, out string) (r quantizeReport, ratio float64) {
	all := make(map[string]json.RawMessage)
	must(t, json.Unmarshal([]byte(out), &all))
	var outputs []map[string]any
	must(t, json.Unmarshal(all["outputs"], &outputs))
	delete(all, "outputs")
	rest, err := json.Marshal(all)
	must(t, err)
	must(t, json.Unmarshal(rest, &r))
	if ratio, ok := outputs[0]["snr_db"].(float64); ok {
		return r, ratio
	}
	return r, math.Inf(1)
}

// TestQuantizeDigits quantizes the digits with every scheme, from portable operators and from an exporter's payload of floats. 99 of the
// 100 test images are recognized before.
func TestQuantizeDigits(t *testing.T) {
	images, labels := digitImages(t)
	folder := imageFolder(t, images, 50)
	for _, c := range []struct {
		model, args string
		layers      int
		dB          float64
		bytes       int // largest size, in percent of the model's
	}{
		{"portable", "--scheme dq8", 1, 42, 105},
		{"portable", "--scheme dq8 --all", 3, 30, 45},
		{"portable", "--scheme q8", 5, 30, 45},
		{"portable", "--scheme q8 --observer minmax", 5, 28, 45},
		{"portable", "--scheme q8 --observer percentile", 5, 28, 45},
		{"portable", "--scheme w8", 1, 42, 105},
		{"portable", "--scheme 8da4w", 1, 17, 105},
		{"xnnpack", "--scheme dq8", 1, 42, 105},
		{"xnnpack", "--scheme q8", 5, 30, 45},
	} {
		name := c.model + " " + c.args
		from, _ := filepath.Abs("../../testdata/digits/" + c.model + ".pte")
		to := filepath.Join(t.TempDir(), "out.pte")
		args := append(strings.Fields(c.args), from, "-o", to, "--json", "--calibrate", folder)
		code, out, notes := quantized(args...)
		if code != 0 {
			t.Errorf("%s: exit code %d, %s", name, code, notes)
			continue
		}
		r, ratio := readReport(t, out)
		n := 0
		for _, l := range r.Layers {
			if l.Quantized {
				n++
			}
		}
		if n != c.layers || ratio < c.dB || r.Samples != 50 || 100*r.OutputBytes > c.bytes*r.Bytes {
			t.Errorf("%s: %d layers, want %d; output %v dB, want %v; %d bytes of %d", name, n, c.layers, ratio, c.dB, r.OutputBytes, r.Bytes)
		}
		original, err := os.ReadFile(from)
		must(t, err)
		result, err := os.ReadFile(to)
		must(t, err)
		if faults := compiletest.Check(original, result); len(faults) > 0 {
			t.Errorf("%s: %q", name, faults)
		}
		want := 99
		if strings.Contains(c.args, "minmax") {
			want = 98
		}
		if n := rightDigits(t, to, images, labels); n < want {
			t.Errorf("%s: %d of 100 images are right, want %d", name, n, want)
		}
	}
}

// Products and convolutions that are not lowered are reported.
func TestQuantizeNotLowered(t *testing.T) {
	from, _ := filepath.Abs("../../testdata/views/view_written.pte")
	to := filepath.Join(t.TempDir(), "out.pte")
	code, out, notes := quantized(from, "-o", to)
	if want := "left: 2 calls of aten::addmm.out: not lowered"; code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, %s%s, want %q", code, out, notes, want)
	}
	_, out, notes = quantized(from, "-o", to, "--json")
	if r, _ := readReport(t, out); len(r.NotLowered) == 0 || r.NotLowered[0].Reason == "" {
		t.Errorf("got %+v, %s, want reasons", r.NotLowered, notes)
	}
}

// Layers are left as they are by their names, or until the outputs have the ratio of the budget.
func TestQuantizeLess(t *testing.T) {
	digits, _ := filepath.Abs("../../testdata/digits/portable.pte")
	images, _ := digitImages(t)
	folder := imageFolder(t, images, 5)
	for _, c := range []struct {
		args     string
		min, max int // layers
		dB       float64
	}{
		{"--scheme dq8 --skip *:FullyConnected", 0, 0, 200},
		{"--scheme q8 --skip *:Conv2d", 1, 3, 30},
		{"--scheme q8 --budget 40dB", 1, 4, 40},
		{"--scheme q8 --budget 190dB", 0, 0, 190},
		{"--scheme auto", 5, 5, 30},
		{"--scheme auto --budget 40dB", 3, 5, 40},
		{"--scheme auto --budget 38dB --skip *:Conv2d", 1, 2, 38},
	} {
		to := filepath.Join(t.TempDir(), "out.pte")
		code, out, notes := quantized(append(strings.Fields(c.args), digits, "-o", to, "--json", "--calibrate", folder)...)
		if code != 0 {
			t.Errorf("%s: exit code %d, %s", c.args, code, notes)
			continue
		}
		r, ratio := readReport(t, out)
		n := 0
		for _, l := range r.Layers {
			if l.Quantized {
				n++
			} else if l.Reason == "" {
				t.Errorf("%s: %s has no reason", c.args, l.Name)
			}
		}
		if n < c.min || n > c.max || ratio < c.dB {
			t.Errorf("%s: %d layers, want %d to %d; output %v dB, want %v", c.args, n, c.min, c.max, ratio, c.dB)
		}
	}
}

// Layers of auto have schemes. Without one within the budget nothing is written.
func TestQuantizeAuto(t *testing.T) {
	digits, _ := filepath.Abs("../../testdata/digits/portable.pte")
	images, labels := digitImages(t)
	folder, to := imageFolder(t, images, 20), filepath.Join(t.TempDir(), "out.pte")
	code, out, notes := quantized(digits, "-o", to, "--scheme", "auto", "--budget", "170dB", "--calibrate", folder)
	if _, err := os.Stat(to); code != 6 || err == nil || !strings.Contains(notes, "no layer can be quantized within --budget 170dB") {
		t.Errorf("exit code %d, %s%s, want 6, and no file", code, out, notes)
	}
	var ratios [2]float64
	for i, scheme := range []string{"q8", "auto"} {
		code, out, notes := quantized(digits, "-o", to, "--scheme", scheme, "--json", "--calibrate", folder)
		if code != 0 {
			t.Fatalf("%s: exit code %d, %s", scheme, code, notes)
		}
		var r quantizeReport
		r, ratios[i] = readReport(t, out)
		if i == 1 && (r.Observer == "" || r.Budget != autoBudget || r.Layers[0].Scheme != "q8" || r.Measured != 6) {
			t.Errorf("%s: got %+v, want an observer, the budget, schemes and 6 of 20 inputs that measure", scheme, r)
		}
		if n := rightDigits(t, to, images, labels); n < 98 {
			t.Errorf("%s: %d of 100 images are right, want 98", scheme, n)
		}
	}
	if ratios[1] < ratios[0] {
		t.Errorf("auto has %v dB with the layers of q8, which has %v", ratios[1], ratios[0])
	}
}

// The values of a quantized program are beside those of the one of floats, and inspect shows their scales.
func TestQuantizedLayers(t *testing.T) {
	digits, _ := filepath.Abs("../../testdata/digits/portable.pte")
	images, _ := digitImages(t)
	for _, scheme := range []string{"--scheme q8", "--scheme dq8 --all"} {
		to := filepath.Join(t.TempDir(), "out.pte")
		code, _, notes := quantized(append(strings.Fields(scheme), digits, "-o", to, "--calibrate", imageFolder(t, images, 20))...)
		if code != 0 {
			t.Fatalf("%s: exit code %d, %s", scheme, code, notes)
		}
		for _, files := range [][2]string{{digits, to}, {to, digits}} {
			var out, notes bytes.Buffer
			args := []string{"compare", files[0], files[1], "--input", filepath.Join(imageFolder(t, images, 1), "00.bin"), "--layer", "--json"}
			code := run(args, strings.NewReader(""), &out, &notes)
			var r comparedReport
			must(t, json.Unmarshal(out.Bytes(), &r))
			if code != 6 || r.Layer == nil || len(r.Layer.Nearest) < 8 || files[1] == to && len(r.Layer.Nearest) < r.Layer.Values-1 {
				t.Fatalf("%s: exit code %d, %s%s, want all values beside others", scheme, code, out.String(), notes.String())
			}
			for _, n := range r.Layer.Nearest {
				if n.DB < 20 || n.To.Instruction < 0 {
					t.Errorf("%s: %v, output %d: %v dB beside %v, want 20", scheme, n.Place, n.Output, n.DB, n.To)
				}
			}
		}
		var out, notesOf bytes.Buffer
		if run([]string{"inspect", "-v", to}, strings.NewReader(""), &out, &notesOf); !strings.Contains(out.String(), "filter scales ") ||
			scheme == "--scheme q8" && !strings.Contains(out.String(), "output scale 0.0") {
			t.Errorf("%s: inspect shows no scales: %s%s", scheme, out.String(), notesOf.String())
		}
	}
}

// Numbers that only the quantized program does not have are noise; those that the model does not have are counted.
func TestQuantizeNoise(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		want, got []float32
		dB        float64
		notFinite int
	}{
		{[]float32{3, 4}, []float32{3, 4}, math.Inf(1), 0},
		{[]float32{10, 0}, []float32{10, 1}, 20, 0},
		{[]float32{10, 0}, []float32{10, nan}, math.Inf(-1), 0},
		{[]float32{10, 0}, []float32{-inf, 0}, math.Inf(-1), 0},
		{[]float32{10, nan, inf}, []float32{9, nan, 0}, 20, 2},
		{[]float32{10, -inf, inf}, []float32{9, nan, inf}, 20, 2},
	} {
		want, got := tensor.TensorValue(tensor.Of(c.want, len(c.want))), tensor.TensorValue(tensor.Of(c.got, len(c.got)))
		sums, err := addNoise(nil, []*tensor.Value{&got}, []*tensor.Value{&want})
		must(t, err)
		if n := sums[0]; decibels(n.signal, n.noise) != c.dB || n.notFinite != c.notFinite {
			t.Errorf("%v and %v: got %+v, want %v dB, %d not finite", c.want, c.got, n, c.dB, c.notFinite)
		}
	}
}

// Samples without finite numbers leave all layers as they are, and the report says that outputs were not compared.
func TestQuantizeNotFinite(t *testing.T) {
	digits, _ := filepath.Abs("../../testdata/digits/portable.pte")
	sample := filepath.Join(t.TempDir(), "nan.bin")
	write(t, sample, bytes.Repeat([]byte{0, 0, 0xc0, 0x7f}, 64))
	code, out, notes := quantized(digits, "-o", filepath.Join(t.TempDir(), "out.pte"), "--scheme", "q8", "--calibrate", sample)
	if code != 0 || !strings.Contains(out, "0 of 5 layers") || !strings.Contains(out, "without 10 numbers of the model that are NaN") {
		t.Errorf("exit code %d, %s%s", code, out, notes)
	}
}

func TestQuantizeRefuses(t *testing.T) {
	digits, _ := filepath.Abs("../../testdata/digits/portable.pte")
	for _, c := range []struct{ args, want string }{
		{"--scheme int8", `--scheme "int8"`},
		{"--scheme q8", "--calibrate"},
		{"--scheme q8 --calibrate missing", "missing"},
		{"--observer mean", "--observer"},
		{"--group 48", "--group 48"},
		{"--skip [", "--skip"},
		{"--skip *:FullyConnected --skip *:Softmin", `--skip "*:Softmin" matches none of the 5 layers`},
		{"--group 64", "--scheme 8da4w and auto, not for dq8"},
		{"--scheme w8 --observer minmax", "--scheme q8, not for w8"},
		{"--scheme 8da4w --all", "--scheme dq8 and auto, not for 8da4w"},
		{"--scheme w8 --calibrate ../../testdata/digits --verify=false", "--calibrate with --scheme w8"},
		{"--options resize=8", "--options is for"},
		{"--budget loud", "--budget"},
		{"--scheme auto", "--calibrate"},
		{"--scheme auto --calibrate ../../testdata/digits --verify=false", "--scheme auto needs runs"},
		{"--scheme auto --observer mse --calibrate ../../testdata/digits", "--scheme q8, not for auto"},
		{"--budget 40dB --verify=false", "--budget"},
		{"--method forwards", "no method"},
		{"--target-version 1.6", "--target-version"},
	} {
		to := filepath.Join(t.TempDir(), "out.pte")
		code, _, notes := quantized(append(strings.Fields(c.args), digits, "-o", to)...)
		if code != 2 || !strings.Contains(notes, c.want) {
			t.Errorf("%s: exit code %d, want 2, %q; %s", c.args, code, c.want, notes)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s: a file was written", c.args)
		}
	}
	weights := "../../testdata/pte/external_weights.pte"
	for _, verify := range []string{"--verify=true", "--verify=false"} {
		to := filepath.Join(t.TempDir(), "out.pte")
		code, _, notes := quantized(weights, "-o", to, verify)
		if _, err := os.Stat(to); code != 4 || !strings.Contains(notes, "pass --data FILE.ptd") || err == nil {
			t.Errorf("no data, %s: exit code %d, %s", verify, code, notes)
		}
	}
	if code, _, notes := quantized(digits); code != 2 || !strings.Contains(notes, "-o OUT.pte") {
		t.Errorf("no output: exit code %d, %s", code, notes)
	}
}

// The table of an embedding gets 8 bits with 4-bit layers, unless it is skipped. Its floats are no longer in the file.
func TestQuantizeEmbedding(t *testing.T) {
	from, _ := filepath.Abs("../../text/testdata/counted.pte")
	for skip, want := range map[string]int{"": 1, "--skip=*:embedding:*": 0} {
		to := filepath.Join(t.TempDir(), "out.pte")
		code, out, notes := quantized(append(strings.Fields(skip), from, "-o", to, "--scheme", "8da4w", "--json")...)
		if code != 0 {
			t.Fatalf("exit code %d, %s", code, notes)
		}
		r, ratio := readReport(t, out)
		if len(r.Embeddings) != want || ratio < 30 || want == 1 && r.OutputBytes >= r.Bytes {
			t.Errorf("%s: embeddings %v, want %d; output %v dB; %d bytes of %d", skip, r.Embeddings, want, ratio, r.OutputBytes, r.Bytes)
		}
		result, err := os.ReadFile(to)
		must(t, err)
		if is := bytes.Contains(result, []byte("quantized_decomposed::embedding_byte")); is != (want == 1) {
			t.Errorf("%s: the operator for 8 bits is among those of the program: %v", skip, is)
		}
	}
}

// Without files of inputs, all methods with layers run, and their outputs are measured.
func TestQuantizeMethods(t *testing.T) {
	from := "../../testdata/digits/portable.pte"
	data, err := os.ReadFile(from)
	must(t, err)
	file, err := tree.Decode(data)
	must(t, err)
	plans := file.Root.Fields["execution_plan"].([]*tree.Node)
	other := tree.New(plans[0].Type)
	maps.Copy(other.Fields, plans[0].Fields)
	file.Root.With("execution_plan", []*tree.Node{plans[0].With("name", "first"), other.With("name", "second")})
	dir := t.TempDir()
	from = filepath.Join(dir, "in.pte")
	write(t, from, file.Bytes())
	code, out, notes := quantized(from, "-o", filepath.Join(dir, "out.pte"), "--json")
	var r quantizeReport
	must(t, json.Unmarshal([]byte(out), &r))
	if code != 0 || len(r.Outputs) != 2 || len(r.Layers) == 0 || len(r.Layers)%2 != 0 {
		t.Fatalf("exit code %d, %s%s", code, out, notes)
	}
	for i, method := range []string{"first", "second"} {
		if o := r.Outputs[i]; o.Method != method || o.Output != 0 || !(o.DB > 20) {
			t.Errorf("got %+v, want method %q and at least 20 dB", o, method)
		}
	}
	if code, _, notes := quantized(from, "-o", filepath.Join(dir, "q8.pte"), "--scheme", "q8", "--calibrate", "../../testdata/digits/samples"); code != 2 ||
		!strings.Contains(notes, "choose one with --method") {
		t.Errorf("samples without a method: exit code %d, %s", code, notes)
	}
}
