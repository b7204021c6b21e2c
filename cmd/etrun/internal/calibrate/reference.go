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

// ErrReference is a set of arrays that does not tell about an output; match with errors.Is.
var ErrReference = errors.New("no reference values")

// NewReference takes arrays with distinct names.
func NewReference(arrays []*npy.Array) (*Reference, error) {
	r := &Reference{arrays: arrays, used: make(map[string]bool)}
	names := make(map[string]bool, len(arrays))
	for _, a := range arrays {
		if names[a.Name] {
			return nil, fmt.Errorf("%w: two arrays are called %q", ErrReference, a.Name)
		}
		names[a.Name] = true
	}
	return r, nil
}

// Unused lists the arrays that no fit used, in their order.
func (r *Reference) Unused() (names []string) {
	for _, a := range r.arrays {
		if !r.used[a.Name] {
			names = append(names, a.Name)
		}
	}
	return names
}

// Key is the name of an output: DELEGATE:OUTPUT.
func Key(o *ethosu.StaleOutput) string { return fmt.Sprintf("%d:%d", o.Delegate, o.Output) }

// Fit fits the array that is named after an output, METHOD/DELEGATE:OUTPUT or
// DELEGATE:OUTPUT, to what the NPU wrote. found is false where there is none.
func (r *Reference) Fit(c *ethosu.Calibration) (f Fit, name string, found bool, err error) {
	for _, name := range []string{c.Method + "/" + Key(&c.StaleOutput), Key(&c.StaleOutput)} {
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

// Search fits the arrays of an output's sizes and takes the one that fits, whatever its
// name. Of two that fit about as well and tell different scales it takes none.
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
		return best, "", fmt.Errorf("%w: arrays %q and %q both fit; call one %q", ErrReference, name, rival, Key(&c.StaleOutput))
	}
	if name == "" {
		return best, "", fmt.Errorf("%w: no array is called %q, and none of sizes %v fits%s", ErrReference, Key(&c.StaleOutput), c.Sizes, list(why))
	}
	r.used[name] = true
	return best, name, nil
}

// close reports two fits of which neither is much better than the other, or both are good.
func close(a, b Fit) bool {
	const good = 0.01
	return max(a.RMS, good) <= 2*max(b.RMS, good) && max(b.RMS, good) <= 2*max(a.RMS, good)
}

// list is a few reasons.
func list(why []string) string {
	const most = 4
	if len(why) > most {
		why = append(why[:most:most], fmt.Sprintf("and %d more", len(why)-most))
	}
	if len(why) == 0 {
		return ""
	}
	return ": " + strings.Join(why, "; ")
}

// isKey reports the name of an output.
func isKey(name string) bool {
	var d, o int
	_, key, found := strings.Cut(name, "/")
	if !found {
		key = name
	}
	n, _ := fmt.Sscanf(key, "%d:%d", &d, &o)
	return n == 2 && key == fmt.Sprintf("%d:%d", d, o)
}

// fitArray fits an array in logical order to an output in the order of its memory.
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
	return Of(c.Stored, tensor.Data[float64](stored), c.Written)
}

// sameSizes compares sizes but for those that are 1.
func sameSizes(a, b []int) bool {
	one := func(n int) bool { return n == 1 }
	return slices.Equal(slices.DeleteFunc(slices.Clone(a), one), slices.DeleteFunc(slices.Clone(b), one))
}
