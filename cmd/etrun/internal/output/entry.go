// Package output writes a method's outputs: to files that appear complete or not at all,
// and as text.
package output

import (
	"fmt"
	"math"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Entry describes one output in outputs.json and in --json.
type Entry struct {
	Index    int      `json:"index"`
	Kind     string   `json:"kind"` // tensor, int, double, bool, string, none, or a list kind such as tensor_list
	DType    string   `json:"dtype,omitempty"`
	Shape    []int    `json:"shape,omitzero"`
	DimOrder []int    `json:"dim_order,omitzero"`
	File     string   `json:"file,omitempty"`  // raw little-endian elements in memory order; relative to output_dir
	Value    any      `json:"value,omitempty"` // scalars; NaN and infinities as text
	Items    []Entry  `json:"items,omitzero"`  // lists
	Summary  *Summary `json:"summary,omitempty"`
	Decoded  any      `json:"decoded,omitempty"` // what --decode read: texts, spans or boxes
}

// Describer makes entries.
type Describer struct {
	Save      func(name string, t *tensor.Tensor) error // writes a tensor to a file; nil for no files
	Summaries bool                                      // also summarize the elements of tensors
	Scores    Scores                                    // settings of the summaries
}

// Describe returns the entry of a value. stem is its file name: tensors go to stem.bin,
// those of a list to stem.0.bin, stem.1.bin, ….
func (d Describer) Describe(index int, v *tensor.Value, stem string) (Entry, error) {
	e := Entry{Index: index, Kind: strings.ReplaceAll(v.Kind.String(), " ", "_")}
	switch v.Kind {
	case tensor.KindTensor:
		err := d.tensor(&e, v.Tensor, stem)
		return e, err
	case tensor.KindInt:
		e.Value = v.Int
	case tensor.KindDouble:
		e.Value = number(v.Double)
	case tensor.KindBool:
		e.Value = v.Bool
	case tensor.KindString:
		e.Value = v.Str
	case tensor.None:
	default:
		e.Items = []Entry{}
		for i, item := range listItems(v) {
			sub, err := d.Describe(i, item, fmt.Sprintf("%s.%d", stem, i))
			if err != nil {
				return e, err
			}
			e.Items = append(e.Items, sub)
		}
	}
	return e, nil
}

func (d Describer) tensor(e *Entry, t *tensor.Tensor, stem string) error {
	e.DType, e.Shape, e.DimOrder = t.DType.String(), append([]int{}, t.Sizes...), []int{}
	for _, dim := range t.DimOrder {
		e.DimOrder = append(e.DimOrder, int(dim))
	}
	if d.Summaries {
		e.Summary = d.Scores.Summarize(t)
	}
	if d.Save == nil {
		return nil
	}
	e.File = stem + ".bin"
	return d.Save(e.File, t)
}

// number returns d, or its name if JSON cannot represent it.
func number(d float64) any {
	switch {
	case math.IsNaN(d):
		return "NaN"
	case math.IsInf(d, 1):
		return "Infinity"
	case math.IsInf(d, -1):
		return "-Infinity"
	}
	return d
}

func listItems(v *tensor.Value) []*tensor.Value {
	items := v.Items
	for _, b := range v.Bools {
		item := tensor.BoolValue(b)
		items = append(items, &item)
	}
	for _, d := range v.Doubles {
		item := tensor.DoubleValue(d)
		items = append(items, &item)
	}
	return items
}
