package evaluate

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Tally counts the results of a classifier.
type Tally struct {
	Samples int
	Top1    int
	Top5    int
	Invalid int     // samples with a score that is NaN
	Classes []Class // by class of the samples

	confused map[[2]int]int // samples by class and by the class with the highest score
}

// Class counts the samples of one class.
type Class struct {
	Samples   int
	Top1      int
	Top5      int
	Predicted int // samples of any class with the highest score for this one
}

// Confusion is a number of samples of one class that have the highest score for another one.
type Confusion struct{ Class, Predicted, Samples int }

// NewTally returns an empty tally of n classes.
func NewTally(n int) *Tally { return &Tally{Classes: make([]Class, n), confused: make(map[[2]int]int)} }

// Add counts a sample of a class by its scores, and returns the class with the highest one, -1 if a score is NaN.
// There may be more scores than classes. Of equal scores the first is the highest.
func (t *Tally) Add(class int, scores []float64) int {
	t.Samples++
	t.Classes[class].Samples++
	if slices.ContainsFunc(scores, math.IsNaN) {
		t.Invalid++
		return -1
	}
	best, above := 0, 0
	for i, x := range scores {
		if x > scores[best] {
			best = i
		}
		if x > scores[class] || x == scores[class] && i < class {
			above++
		}
	}
	if best < len(t.Classes) {
		t.Classes[best].Predicted++
	}
	t.confused[[2]int{class, best}]++
	if above == 0 {
		t.Top1++
		t.Classes[class].Top1++
	}
	if above < 5 {
		t.Top5++
		t.Classes[class].Top5++
	}
	return best
}

// Confusions returns the numbers of samples of other classes, the largest first.
func (t *Tally) Confusions() (list []Confusion) {
	for at, n := range t.confused {
		if at[0] != at[1] {
			list = append(list, Confusion{at[0], at[1], n})
		}
	}
	sort.Slice(list, func(i, k int) bool {
		a, b := &list[i], &list[k]
		return cmp.Or(b.Samples-a.Samples, a.Class-b.Class, a.Predicted-b.Predicted) < 0
	})
	return list
}

// Matrix returns the samples by class and predicted class, with a column for each score below n.
func (t *Tally) Matrix(n int) [][]int {
	m := make([][]int, len(t.Classes))
	for i := range m {
		m[i] = make([]int, n)
	}
	for at, count := range t.confused {
		if at[1] < n {
			m[at[0]][at[1]] = count
		}
	}
	return m
}
