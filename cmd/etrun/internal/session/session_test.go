package session

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/advice"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/runtime/pte/tree"
)

// open opens a program of the command's tests with flags; said receives its notes.
func open(t *testing.T, name string, said *[]string, args ...string) (*Session, Calls) {
	t.Helper()
	var calls Calls
	o := &Options{Say: func(format string, args ...any) { *said = append(*said, fmt.Sprintf(format, args...)) }}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	calls.AddFlags(flags)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), "../../testdata/"+name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, calls
}

// Each round of calls starts from the initial state; state persists within a round.
func TestOnceBeginsWithFreshState(t *testing.T) {
	var said []string
	s, calls := open(t, "state.pte", &said, "--input", "ones", "--next", "--input", "ones")
	if err := s.Prepare(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		var got []float32
		err := s.Once(t.Context(), func(_ int, st *Step) error {
			outputs, err := st.Outputs()
			got = append(got, tensor.Data[float32](outputs[0].Tensor)[0])
			return err
		})
		if want := []float32{2, 4}; err != nil || !slices.Equal(got, want) {
			t.Errorf("round %d: got %v, %v, want %v", round, got, err, want)
		}
	}
	for k, st := range s.Steps {
		if len(st.Took) != 3 || slices.Min(st.Took) <= 0 {
			t.Errorf("call %d: times %v, want three", k, st.Took)
		}
	}
}

func TestSessionSays(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"random inputs", []string{"--seed", "5"}, []string{"no --input: using random elements, seed 5"}},
		{"an engine of lowering", []string{"--input", "ones", "--xnnpack", "go"}, nil},
		{"an unused engine", []string{"--input", "ones", "--xnnpack", "reference", "--lower", "rewrite"},
			[]string{"note: --xnnpack reference is called --xnnpack go now",
				"warning: --xnnpack has no effect: the program has no delegate of XnnpackBackend"}},
		{"a seed for nothing", []string{"--input", "ones", "--seed", "3"},
			[]string{"warning: --seed has no effect: neither inputs nor operators are random"}},
		{"a seed of an input", []string{"--input", "rand", "--seed", "3"}, nil},
		{"nothing", []string{"--input", "ones"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said []string
			s, calls := open(t, "state.pte", &said, c.args...)
			if err := s.Prepare(t.Context(), calls); err != nil {
				t.Fatal(err)
			}
			s.Warn() // already reported
			if !slices.Equal(said, c.want) {
				t.Errorf("said %q, want %q", said, c.want)
			}
		})
	}
}

func TestSessionRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		reason error
	}{
		{"a method that is not there", []string{"--method", "gone"}, ErrUsage},
		{"an input too many, in the second call", []string{"--input", "ones", "--next", "--input", "ones", "--input", "ones"}, input.ErrMismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said []string
			s, calls := open(t, "state.pte", &said, c.args...)
			if err := s.Prepare(t.Context(), calls); !errors.Is(err, c.reason) {
				t.Errorf("got %v, want %v", err, c.reason)
			}
		})
	}
}

func TestWithHint(t *testing.T) {
	const memory = "; a larger --max-memory allows it"
	arenas := "execution_plan[0].non_const_buffer_sizes[1]"
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"memory", &etrun.MemoryError{Want: 2, Limit: 1}, memory},
		{"memory of a delegate", fmt.Errorf("delegate 0: %w", delegate.ErrMemory), memory},
		{"arenas above the limit", &pte.FormatError{Reason: pte.ErrLimit, Path: arenas}, memory},
		{"malformed arenas", &pte.FormatError{Reason: pte.ErrFormat, Path: arenas}, ""},
		{"values above the limit", &pte.FormatError{Reason: pte.ErrLimit, Path: "execution_plan[0].values"}, ""},
		{"missing weights", &etrun.MissingError{Data: []string{"w"}}, ""},
		{"a missing operator", &etrun.MissingError{Operators: []etrun.MissingOperator{{Name: "aten::x"}}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := fmt.Errorf("model.pte: %w", c.err)
			if got, want := WithHint(err).Error(), advice.Command(err.Error())+c.want; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if !errors.Is(WithHint(err), c.err) {
				t.Error("the cause is lost")
			}
		})
	}
}

// TestLargeArenas opens a program whose memory plan is above the default limit.
func TestLargeArenas(t *testing.T) {
	file, err := os.ReadFile("../../../../testdata/pte/two_conds.pte")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ptetest.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	ptetest.Set(f.Root, "execution_plan[0].non_const_buffer_sizes[1]", tree.Scalar(9<<30))
	for _, c := range []struct{ limit, want string }{
		{"0", "; a larger --max-memory allows it"}, {"1GiB", "; a larger --max-memory allows it"}, {"16GiB", ""},
	} {
		if c.want == "" && strconv.IntSize == 32 {
			continue // no limit allows it
		}
		o := &Options{Say: t.Logf}
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.AddFlags(flags)
		if err := flags.Parse([]string{"--max-memory", c.limit}); err != nil {
			t.Fatal(err)
		}
		s, err := OpenSource(t.Context(), "large.pte", etrun.Bytes("large.pte", f.Bytes()), o)
		if err == nil {
			err = s.Close()
		}
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.HasSuffix(got, c.want) && err != nil {
			t.Errorf("--max-memory %s: got %v, want %q", c.limit, err, c.want)
		}
	}
}

func TestForeignKind(t *testing.T) {
	for _, c := range []struct{ start, want string }{
		{"\x1c\x00\x00\x00TFL3\x14\x00", "a TensorFlow Lite model"},
		{"GGUF\x03\x00\x00\x00", "a GGUF model"},
		{"PK\x03\x04\x00\x00", "a zip archive, as PyTorch's own .pt, .pth and .pt2 files are"},
		{"\x58\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\"", "a safetensors file"},
		{"\x08\x07\x12\x07pytorch\x1a\x051.12", "an ONNX model"},
		{"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"},
		{"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P", "a Python pickle, as old PyTorch checkpoints are"},
		{"\x1c\x00\x00\x00ET12", ""},
		{"# etrun\n\nRun ExecuTorch programs", "a text file"},
		{"{\"model\": 1}\r\n", "a text file"},
		{strings.Repeat("é", 31) + "a\xc3", "a text file"}, // cut inside a character
		{strings.Repeat("é", 10) + "\xc3", ""},
		{"noise \x00 noise noise", ""},
		{"\xff\xfe\x00", ""},
		{"", ""},
	} {
		if got, _ := foreignKind([]byte(c.start), 1000); got != c.want {
			t.Errorf("%q: got %q, want %q", c.start, got, c.want)
		}
	}
}
