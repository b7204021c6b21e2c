package output

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Summary summarizes a tensor's elements. Min, Max and Mean ignore NaNs; they are NaN if
// there are no other elements.
type Summary struct {
	Min   Number   `json:"min"`
	Max   Number   `json:"max"`
	Mean  Number   `json:"mean"`
	NaNs  int      `json:"nans,omitempty"`
	First []Number `json:"first"` // in memory order
	Top   []Score  `json:"top,omitempty"`
}

// Score is one of the largest elements of a tensor that looks like logits.
type Score struct {
	Class int    `json:"class"`
	Label string `json:"label,omitempty"`
	Score Number `json:"score"`
}

// Scores sets how the largest elements of an output are shown.
type Scores struct {
	Top     int      // how many; 0: a few, for floats that look like logits
	Softmax bool     // show probabilities
	Labels  []string // class names, nil for none
}

// Number is a float64 that JSON can represent, whatever its value.
type Number float64

// MarshalJSON writes NaN and infinities as text.
func (n Number) MarshalJSON() ([]byte, error) {
	if text, ok := number(float64(n)).(string); ok {
		return []byte(strconv.Quote(text)), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// Limits of a summary.
const (
	firsts = 6
	tops   = 5
)

// Summarize summarizes a tensor and finds its largest elements; it returns nil if the
// tensor is empty or its elements are not real numbers.
func (o *Scores) Summarize(t *tensor.Tensor) *Summary {
	load := tensor.Loader[float64](t.DType)
	if load == nil || t.Numel() == 0 {
		return nil
	}
	s := &Summary{Min: Number(math.Inf(1)), Max: Number(math.Inf(-1))}
	sum, n := 0.0, 0
	block := make([]float64, 1024)
	for left := t.Data; len(left) > 0; {
		have := min(len(left)/t.DType.Size(), len(block))
		load(block[:have], left)
		left = left[have*t.DType.Size():]
		for _, v := range block[:have] {
			if len(s.First) < firsts {
				s.First = append(s.First, Number(v))
			}
			if math.IsNaN(v) {
				s.NaNs++
				continue
			}
			s.Min, s.Max = min(s.Min, Number(v)), max(s.Max, Number(v))
			sum, n = sum+v, n+1
		}
	}
	if s.Mean = Number(sum / float64(n)); n == 0 {
		s.Min, s.Max = s.Mean, s.Mean
	}
	s.Top = o.top(t)
	return s
}

// Asked reports whether any setting of scores is set.
func (o *Scores) Asked() bool { return o.Top > 0 || o.Softmax || o.Labels != nil }

// Shows reports whether the largest elements of a value are shown.
func (o *Scores) Shows(v *tensor.Value) bool {
	return v.Kind == tensor.KindTensor && tensor.Loader[float64](v.Tensor.DType) != nil && v.Tensor.Numel() > 0 && o.top(v.Tensor) != nil
}

// top finds the largest elements of a single row of classes.
func (o *Scores) top(t *tensor.Tensor) []Score {
	n := t.Numel()
	asked := o.Asked()
	if t.Rank() == 0 || len(squeezed(t.Sizes)) > 1 || !asked && (!t.DType.IsFloat() || t.Rank() > 2 || n < tops || t.Sizes[t.Rank()-1] != n) {
		return nil
	}
	values, scores := make([]float64, n), make([]Score, n)
	tensor.Loader[float64](t.DType)(values, t.Data)
	if o.Softmax {
		softmax(values)
	}
	for i, v := range values {
		scores[i] = Score{Class: i, Score: Number(v)}
		if i < len(o.Labels) {
			scores[i].Label = o.Labels[i]
		}
	}
	sort.SliceStable(scores, func(i, k int) bool { return cmp.Less(scores[k].Score, scores[i].Score) })
	return scores[:min(cmp.Or(o.Top, tops), n)]
}

// softmax replaces logits by probabilities.
func softmax(values []float64) {
	largest, sum := slices.Max(values), 0.0
	for i, v := range values {
		values[i] = math.Exp(v - largest)
		sum += values[i]
	}
	for i := range values {
		values[i] /= sum
	}
}

// Print writes the summary of one output in one or two lines.
func (o *Scores) Print(w io.Writer, i int, v *tensor.Value) {
	fmt.Fprintf(w, "  output %d: ", i)
	o.printValue(w, v)
}

func (o *Scores) printValue(w io.Writer, v *tensor.Value) {
	switch v.Kind {
	case tensor.KindTensor:
		o.printTensor(w, v.Tensor)
	case tensor.KindInt:
		fmt.Fprintf(w, "int %d\n", v.Int)
	case tensor.KindDouble:
		fmt.Fprintf(w, "double %v\n", v.Double)
	case tensor.KindBool:
		fmt.Fprintf(w, "bool %v\n", v.Bool)
	case tensor.KindString:
		fmt.Fprintf(w, "string %q\n", v.Str)
	case tensor.None:
		fmt.Fprintln(w, "none")
	default:
		fmt.Fprintf(w, "%v of %d\n", v.Kind, len(listItems(v)))
		for i, item := range listItems(v) {
			fmt.Fprintf(w, "    %d: ", i)
			o.printValue(w, item)
		}
	}
}

func (o *Scores) printTensor(w io.Writer, t *tensor.Tensor) {
	fmt.Fprintf(w, "%v %s", t.DType, tensor.FormatSizes(t.Sizes))
	s := o.Summarize(t)
	if s == nil {
		fmt.Fprintf(w, ", %d bytes\n", t.NBytes())
		return
	}
	fmt.Fprintf(w, "  min %s  max %s  mean %s", s.Min, s.Max, s.Mean)
	if s.NaNs > 0 {
		fmt.Fprintf(w, "  NaNs %d", s.NaNs)
	}
	first := make([]string, len(s.First))
	for i, v := range s.First {
		first[i] = v.String()
	}
	fmt.Fprintf(w, "\n    first %s", strings.Join(first, " "))
	if t.Numel() > firsts {
		fmt.Fprint(w, " …")
	}
	fmt.Fprintln(w)
	s.printTop(w)
}

// String formats n with 5 digits, integers in full.
func (n Number) String() string {
	if f := float64(n); f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(float64(n), 'g', 5, 64)
}

// printTop writes the largest elements in one line, or one line each with labels.
func (s *Summary) printTop(w io.Writer) {
	if s.Top == nil {
		return
	}
	fmt.Fprint(w, "    top")
	named := slices.ContainsFunc(s.Top, func(c Score) bool { return c.Label != "" })
	for _, c := range s.Top {
		if named {
			fmt.Fprintf(w, "\n      %d %s (%s)", c.Class, cmp.Or(c.Label, "–"), c.Score)
			continue
		}
		fmt.Fprintf(w, "  %d (%s)", c.Class, c.Score)
	}
	fmt.Fprintln(w)
}
