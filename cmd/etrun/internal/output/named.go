package output

import "github.com/etrun-go/etrun/kernels/tensor"

// Put writes a value under a name: a list under several names, text and None not at all.
func (a *Archive) Put(name string, v *tensor.Value) error {
	if err := a.value(name, v); err != nil {
		return &Error{err}
	}
	return nil
}
