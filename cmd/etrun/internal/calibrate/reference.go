package calibrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Reference is a set of named arrays of reference values.
type Reference struct {
	arrays []*npy.Array
	used   map[string]bool
}

// ErrReference means that no array fits an output; match with errors.Is.
var ErrReference = errors.New("no reference values")

// NewReference returns a set of arrays, which must have distinct names.
func NewReference(arrays []*npy.Array) (*Reference, error) {
	r := &Reference{arrays: arrays, used: make(map[string]bool)}
	names := make(map[string]bool, len(arrays))
	for _, a := range arrays {
		if names[a.Name] {
			return nil, fmt.Errorf("%w: two arrays have the name %q", ErrReference, a.Name)
		}
		names[a.Name] = true
	}
	return r, nil
}

// Unused returns the names of the arrays that no fit used, in order.
func (r *Reference) Unused() (names []string) {
	for _, a := range r.arrays {
		if !r.used[a.Name] {
			names = append(names, a.Name)
		}
	}
	return names
}

// key returns the name of an output: DELEGATE:OUTPUT.
func key(o *ethosu.StaleOutput) string { return fmt.Sprintf("%d:%d", o.Delegate, o.Output) }

// Fit fits the array with the name of an output, METHOD/DELEGATE:OUTPUT or
// DELEGATE:OUTPUT, to the NPU's output. found is false if there is none.
func (r *Reference) Fit(c *ethosu.Calibration) (f Fit, name string, found bool, err error) {
	for _, name := range []string{c.Method + "/" + key(&c.StaleOutput), key(&c.StaleOutput)} {
		i := slices.IndexFunc(r.arrays, func(a *npy.Array) bool { return a.Name == name })
		if i < 0 {
			continue
		}
		r.used[name] = true
		f, err := fitArray(r.arrays[i], c)
		if err != nil {
			err = fmt.Errorf("array %q: %w", name, err)
		}
		return f, name, true, err
	}
	return Fit{}, "", false, nil
}

// Search fits all arrays of an output's sizes and returns the one that fits, whatever its
// name. If two fit about equally well with different scales, it returns an error.
func (r *Reference) Search(c *ethosu.Calibration) (best Fit, name string, err error) {
	var why []string
	var rival string
	for _, a := range r.arrays {
		if isKey(a.Name) || !sameSizes(a.Sizes, c.Sizes) {
			continue
		}
		f, err := fitArray(a, c)
		if err != nil {
			why = append(why, fmt.Sprintf("%q: %v", a.Name, err))
			continue
		}
		better := name == "" || f.RMS < best.RMS
		switch {
		case name == "", better && !close(f, best):
			rival = ""
		case close(f, best) && (f.Scale != best.Scale || f.ZeroPoint != best.ZeroPoint):
			rival = a.Name
			if better {
				rival = name
			}
		}
		if better {
			best, name = f, a.Name
		}
	}
	if rival != "" {
		return best, "", fmt.Errorf("%w: arrays %q and %q both fit; name one %q", ErrReference, name, rival, key(&c.StaleOutput))
	}
	if name == "" {
		return best, "", fmt.Errorf("%w: no array has the name %q, and none of sizes %v fits%s", ErrReference, key(&c.StaleOutput), c.Sizes, list(why))
	}
	r.used[name] = true
	return best, name, nil
}

// close reports whether neither fit is much better than the other, or both are good.
func close(a, b Fit) bool {
	const good = 0.01
	return max(a.RMS, good) <= 2*max(b.RMS, good) && max(b.RMS, good) <= 2*max(a.RMS, good)
}

// list formats a few reasons.
func list(why []string) string {
	const maxReasons = 4
	if len(why) > maxReasons {
		why = append(why[:maxReasons:maxReasons], fmt.Sprintf("and %d more", len(why)-maxReasons))
	}
	if len(why) == 0 {
		return ""
	}
	return ": " + strings.Join(why, "; ")
}

// isKey reports whether name is the name of an output.
func isKey(name string) bool {
	var d, o int
	_, key, found := strings.Cut(name, "/")
	if !found {
		key = name
	}
	n, _ := fmt.Sscanf(key, "%d:%d", &d, &o)
	return n == 2 && key == fmt.Sprintf("%d:%d", d, o)
}

// fitArray fits an array in logical order to an output in memory order.
func fitArray(a *npy.Array, c *ethosu.Calibration) (Fit, error) {
	load := tensor.Loader[float64](a.DType)
	if a.Void || load == nil {
		return Fit{}, fmt.Errorf("%w: %s, want real numbers", ErrReference, a.TypeName())
	}
	if !sameSizes(a.Sizes, c.Sizes) {
		return Fit{}, fmt.Errorf("%w: sizes %v, the output has %v", ErrReference, a.Sizes, c.Sizes)
	}
	logical := tensor.New(tensor.Float64, c.Sizes...)
	load(tensor.Data[float64](logical), a.Data)
	stored := tensor.Make(tensor.Float64, c.Sizes, c.DimOrder, tensor.Static)
	stored.Bind(tensor.AlignedBytes(stored.NBytes()))
	tensor.CopyLayout(stored, logical)
	return of(c.Stored, tensor.Data[float64](stored), c.Written)
}

// sameSizes compares sizes, ignoring those that are 1.
func sameSizes(a, b []int) bool {
	one := func(n int) bool { return n == 1 }
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), one), slices.DeleteFunc(slices.Clone(b), one))
}
