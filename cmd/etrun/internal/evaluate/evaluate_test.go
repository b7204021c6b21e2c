package evaluate

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/media/decode"
)

// TestTally compares counts with those of sorted scores.
func TestTally(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	const classes = 9
	got, want, invalid := NewTally(classes), [2]int{}, 0
	for range 2000 {
		scores := make([]float64, classes+r.IntN(3))
		order := make([]int, len(scores))
		for i := range scores {
			scores[i], order[i] = float64(r.IntN(6)), i
		}
		class := r.IntN(classes)
		if r.IntN(20) == 0 {
			scores[r.IntN(len(scores))] = math.NaN()
			if invalid++; got.Add(class, scores) != -1 {
				t.Fatal("NaN has a class")
			}
			continue
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(scores[b] - scores[a]) })
		if best := got.Add(class, scores); best != order[0] {
			t.Fatalf("%v: best %d", scores, best)
		}
		if order[0] == class {
			want[0]++
		}
		if slices.Contains(order[:5], class) {
			want[1]++
		}
	}
	if got.Top1 != want[0] || got.Top5 != want[1] || got.Invalid != invalid || got.Samples != 2000 {
		t.Errorf("got %+v, want %v and %d without a class", got, want, invalid)
	}
	sum := got.Top1 + got.Invalid
	for _, c := range got.Confusions() {
		sum += c.Samples
	}
	if sum != 2000 {
		t.Errorf("%d samples are right, wrong or invalid", sum)
	}
}

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		labels, names []string
		want          []int
		n             int
	}{
		{[]string{"3", "0"}, nil, []int{3, 0}, 4},
		{[]string{"dog", "cat", "dog"}, nil, []int{1, 0, 1}, 2},
		{[]string{"cat", "1"}, []string{"cat", "dog"}, []int{0, 1}, 2},
		{[]string{"1"}, []string{"5", "1"}, []int{1}, 2},
		{[]string{"99999999999"}, nil, []int{0}, 1},
		{[]string{"bird"}, []string{"cat"}, nil, 0},
		{[]string{"-1"}, []string{"cat"}, nil, 0},
	} {
		list := make([]Sample, len(c.labels))
		for i, label := range c.labels {
			list[i].Label = label
		}
		names, err := Classes(list, c.names)
		if c.want == nil {
			if !errors.Is(err, ErrSamples) {
				t.Errorf("%q: %v", c.labels, err)
			}
			continue
		}
		for i := range list {
			if list[i].Class != c.want[i] {
				t.Errorf("%q: class %d", c.labels, list[i].Class)
			}
		}
		if err != nil || len(names) != c.n {
			t.Errorf("%q: %q, %v", c.labels, names, err)
		}
	}
}

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		sample, read string
		edits        int
	}{
		{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"Straße", "Strase", 1}, {"ab", "ba", 2},
	} {
		var x Texts
		if got := x.Add(c.sample, c.read); got != c.edits || (x.Exact == 1) != (got == 0) {
			t.Errorf("%q read as %q: got %d, want %d", c.sample, c.read, got, c.edits)
		}
	}
	x := Texts{}
	x.Add("abcd", "abxd")
	x.Add("abcd", "abcd")
	if x.Rate() != 0.125 || x.Exact != 1 || x.Samples != 2 {
		t.Errorf("got %+v, want a rate of 1 in 8", x)
	}
}

// TestBoxes counts boxes: the second of an object is wrong, and precision is that of the boxes with higher scores.
func TestBoxes(t *testing.T) {
	at := func(x float32, class int, score float32) decode.Box {
		return decode.Box{Left: x, Top: 0, Right: x + 10, Bottom: 10, Class: class, Score: score}
	}
	var b Boxes
	b.Add([]decode.Box{at(0, 0, 0), at(100, 0, 0), at(200, 1, 0)}, []decode.Box{at(1, 0, .9), at(0, 0, .8), at(103, 0, .7), at(200, 0, .6)})
	b.Add(nil, []decode.Box{at(0, 0, .95), at(0, 2, .5)})
	classes, mean := b.Precision()
	want := map[int]float64{0: .5, 1: 0} // right at 1 of 2 and 2 of 4 boxes
	if !maps.Equal(classes, want) || mean != .25 || b.Objects != 3 || b.Found != 6 || b.Right != 2 {
		t.Errorf("got %v, mean %v, %+v, want %v", classes, mean, b, want)
	}
}
