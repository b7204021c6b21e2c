package cost

import (
	"math"
	"testing"
)

// fitRates returns rates of at least 0 for which the relative errors of the times of loads are smallest. Terms without which
// the times of their class fit nearly as well are left out.
func fitRates(loads []*Load, ns []float64) RateTable {
	var without [classes][terms]bool
	full := fitRobustly(loads, ns, &without)
	for c := range classes {
		own, rest := samplesOf(c, loads, ns, &full)
		least := meanError(own, rest, fitRobustly(own, rest, &without)) * enough
		for k := termFor(c, own, rest, &without, least); k != terms; k = termFor(c, own, rest, &without, least) {
			without[c][k] = true
		}
	}
	return fitRobustly(loads, ns, &without)
}

// enough is how much larger the errors of a class may be with fewer terms.
const enough = 1.04

// samplesOf returns the loads of one class alone, and the times without those of other classes.
func samplesOf(c class, loads []*Load, ns []float64, r *RateTable) (own []*Load, rest []float64) {
	for i, l := range loads {
		if l[c] == (amounts{}) {
			continue
		}
		one := new(Load)
		one[c] = l[c]
		if left := ns[i] - l.Nanoseconds(r) + one.Nanoseconds(r); left > ns[i]/4 {
			own, rest = append(own, one), append(rest, left)
		}
	}
	return own, rest
}

// termFor returns the term of a class that matters least, terms if the error is above a limit without any.
func termFor(c class, loads []*Load, ns []float64, without *[classes][terms]bool, limit float64) term {
	best := terms
	for k := range terms {
		if without[c][k] {
			continue
		}
		without[c][k] = true
		if e := meanError(loads, ns, fitRobustly(loads, ns, without)); e <= limit {
			best, limit = k, e
		}
		without[c][k] = false
	}
	return best
}

func meanError(loads []*Load, ns []float64, r RateTable) (sum float64) {
	for i, l := range loads {
		sum += math.Abs(l.Nanoseconds(&r)/ns[i]-1) / float64(len(ns))
	}
	return sum
}

// fitRobustly weighs outliers less: the sum of the errors is smallest, not that of their squares.
func fitRobustly(loads []*Load, ns []float64, without *[classes][terms]bool) (r RateTable) {
	weights := make([]float64, len(ns))
	for i := range weights {
		weights[i] = 1
	}
	for range 8 {
		r = leastSquares(loads, ns, weights, without)
		for i, l := range loads {
			weights[i] = 1 / max(0.1, math.Abs(l.Nanoseconds(&r)/ns[i]-1))
		}
	}
	return r
}

const unknowns = int(classes) * int(terms)

// leastSquares solves the least squares problem by coordinate descent.
func leastSquares(loads []*Load, ns, weights []float64, without *[classes][terms]bool) (r RateTable) {
	var products [unknowns][unknowns]float64
	var right [unknowns]float64
	var at [unknowns]int
	var x [unknowns]float64
	for i, l := range loads {
		count := 0
		for j := range unknowns {
			c, k := j/int(terms), j%int(terms)
			if n := l[c][k]; n != 0 && !without[c][k] {
				at[count], x[count] = j, n/ns[i]
				count++
			}
		}
		for a, j := range at[:count] {
			right[j] += weights[i] * x[a]
			for b, k := range at[:count] {
				products[j][k] += weights[i] * x[a] * x[b]
			}
		}
	}
	for j, v := range descend(&products, &right) {
		r[j/int(terms)][j%int(terms)] = v
	}
	return r
}

// descend returns the x of at least 0 for which products·x is nearest to right.
func descend(products *[unknowns][unknowns]float64, right *[unknowns]float64) (x [unknowns]float64) {
	var others [unknowns][]int // that are not 0
	for j := range unknowns {
		for k, p := range products[j] {
			if p != 0 {
				others[j] = append(others[j], k)
			}
		}
	}
	const rounds, small = 3000, 1e-7
	for range rounds {
		moved := false
		for j := range unknowns {
			if products[j][j] == 0 {
				continue
			}
			rest := right[j]
			for _, k := range others[j] {
				rest -= products[j][k] * x[k]
			}
			next := max(0, x[j]+rest/products[j][j])
			moved = moved || math.Abs(next-x[j]) > small*next
			x[j] = next
		}
		if !moved {
			break
		}
	}
	return x
}

// TestFitRates fits exact times of two classes.
func TestFitRates(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes under the race detector")
	}
	want := RateTable{classGraph: {termStart: 30, termRow: 10}, classCopy32: {termStart: 60, termElement: 1}}
	var loads []*Load
	var ns []float64
	for i := range 20 {
		l := &Load{classGraph: {termStart: 1, termRow: float64(1 + i%4)}}
		l[classCopy32] = amounts{termStart: float64(i % 3), termElement: float64(i * i)}
		loads, ns = append(loads, l), append(ns, l.Nanoseconds(&want))
	}
	got := fitRates(loads, ns)
	for c := range want {
		for k, w := range want[c] {
			if math.Abs(got[c][k]-w) > 1e-3*w+1e-9 {
				t.Errorf("%s, %s: got %v, want %v", classNames[c], termNames[k], got[c][k], w)
			}
		}
	}
}
