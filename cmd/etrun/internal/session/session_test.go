package session

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/input"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// open opens a program of the command's tests with flags; said gets what it says.
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

// Each round of calls begins with fresh state, and within a round state persists.
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
		{"random inputs", []string{"--seed", "5"}, []string{"no --input: random elements, seed 5"}},
		{"an engine for nobody", []string{"--input", "ones", "--xnnpack", "reference"}, []string{`warning: "XnnpackBackend": no delegate of the program asks for this backend`}},
		{"nothing", []string{"--input", "ones"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said []string
			s, calls := open(t, "state.pte", &said, c.args...)
			if err := s.Prepare(t.Context(), calls); err != nil {
				t.Fatal(err)
			}
			s.Warn() // has been said
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
