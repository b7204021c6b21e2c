package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
)

var update = flag.Bool("update", false, "rewrite the model")

// The model is that of the tests, with a custom operator.
func TestModel(t *testing.T) {
	p, err := pte.Parse(read(t, "../../testdata/pte/external_weights.pte"), pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := &p.Methods[0]
	from := m.Outputs[0]
	clipped := *m.Values[from].Tensor
	clipped.Storage, clipped.Arena, clipped.Offset = pte.Unplanned, 0, 0
	m.Operators = append(m.Operators, pte.Operator{Name: "demo::clip", Overload: "out"})
	m.Values = append(m.Values, pte.Value{Kind: m.Values[from].Kind, Tensor: &clipped})
	to := len(m.Values) - 1
	m.Chains[0].Instructions = append(m.Chains[0].Instructions, pte.Instruction{Kind: pte.KernelCall, Index: len(m.Operators) - 1,
		Args: []int{from, to, to}})
	m.Outputs = []int{to}
	for name, want := range map[string][]byte{
		"model.pte": ptetest.Write(p, ptetest.Layout{}),
		"model.ptd": read(t, "../../testdata/pte/external_weights.ptd"),
	} {
		if *update {
			if err := os.WriteFile(name, want, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(read(t, name), want) {
			t.Errorf("%s is not what this test makes of testdata (-update writes it)", name)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDaemon(t *testing.T) {
	d, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer d.pool.Close()
	ask := func(body string) (int, string) {
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	const input = "[0,0,0,0,1,-1,1,-1]"
	want := answer(t, 0, 0, 0, 0, 1, -1, 1, -1)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if code, got := ask(input); code != http.StatusOK || got != want {
				t.Errorf("got %d, %s, want %s", code, got, want)
			}
		})
	}
	all.Wait()
	for body, want := range map[string]int{"[1]": 400, "[1,2,3,4,5,6,7,8,9]": 400, "no list": 400, "": 400, strings.Repeat("[", 1<<21): 400} {
		if code, got := ask(body); code != want {
			t.Errorf("%.20q: got %d, %s, want %d", body, code, got, want)
		}
	}
	for _, name := range []string{"demo::clip.out", "aten::addmm.out"} {
		if v := seconds.Get(name); v == nil || v.String() == "0" {
			t.Errorf("no seconds of %s: %v", name, seconds)
		}
	}
}

// answer is the output of the model without its last operator, clipped.
func answer(t *testing.T, x ...float32) string {
	t.Helper()
	prog, err := etrun.Open("../../testdata/pte/external_weights.pte", etrun.WithDataFiles("../../testdata/pte/external_weights.ptd"))
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	m, err := prog.Load(t.Context(), "forward")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	y, err := etrun.Run[float32](t.Context(), m, x)
	if err != nil {
		t.Fatal(err)
	}
	clipped, inside := make([]float32, len(y)), 0
	for i := range y {
		if clipped[i] = min(max(y[i], 0), 1); clipped[i] == y[i] {
			inside++
		}
	}
	if inside == 0 || inside == len(y) {
		t.Fatalf("%v: clipping shows nothing", y)
	}
	text, err := json.Marshal(clipped)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The program stays short, and uses only the promised API.
func TestDaemonImports(t *testing.T) {
	promised := []string{"", "/kernels", "/kernels/tensor", "/delegate", "/delegate/xnnpack", "/delegate/ethosu", "/delegate/all",
		"/runtime/trace", "/runtime/metrics",
		"/text", "/text/tokenizer"}
	f, err := parser.ParseFile(token.NewFileSet(), "main.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		own, ours := strings.CutPrefix(name, "github.com/etrun-go/etrun")
		if first, _, _ := strings.Cut(name, "/"); ours && !slices.Contains(promised, own) || !ours && strings.Contains(first, ".") {
			t.Errorf("it imports %s, which is not promised", name)
		}
	}
	lines := 0
	for line := range strings.Lines(string(read(t, "main.go"))) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	if lines >= 65 {
		t.Errorf("%d lines, want fewer than 65", lines)
	}
}
