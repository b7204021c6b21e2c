// Package ratetest measures times, and fits the rates of cost models to them. It is used by tests, which "make rates" runs.
package ratetest

import "math"

// Samples are measured times in nanoseconds, and the amounts that they are sums of: each amount times its rate. The amounts of
// a class follow each other, Terms of them.
type Samples struct {
	Terms   int
	Amounts [][]float64
	Times   []float64
}

// Add appends a sample.
func (s *Samples) Add(amounts []float64, time float64) {
	s.Amounts, s.Times = append(s.Amounts, amounts), append(s.Times, time)
}

// Time returns the time of amounts by rates.
func Time(amounts, rates []float64) (sum float64) {
	for i, n := range amounts {
		sum += n * rates[i]
	}
	return sum
}

// Fit returns rates of at least 0 for which the relative errors of the times are smallest. Terms without which the times of
// their class fit nearly as well are left out: their rates are 0.
func (s *Samples) Fit() []float64 {
	unknowns := len(s.Amounts[0])
	without := make([]bool, unknowns)
	all := s.FitWithout(without)
	for first := 0; first < unknowns; first += s.Terms {
		own := s.of(first, all)
		if len(own.Times) == 0 {
			continue
		}
		limit := own.meanError(own.FitWithout(without)) * enough
		for j := own.leastTerm(first, without, limit); j >= 0; j = own.leastTerm(first, without, limit) {
			without[j] = true
		}
	}
	return s.FitWithout(without)
}

// enough is how much larger the errors of a class may be with fewer terms.
const enough = 1.04

// of returns the samples of one class alone: the amounts of the others are 0, and their times are subtracted.
func (s *Samples) of(first int, rates []float64) *Samples {
	own := &Samples{Terms: s.Terms}
	for i, amounts := range s.Amounts {
		one, some := make([]float64, len(amounts)), false
		for j := first; j < first+s.Terms; j++ {
			one[j], some = amounts[j], some || amounts[j] != 0
		}
		if left := s.Times[i] - Time(amounts, rates) + Time(one, rates); some && left > s.Times[i]/4 {
			own.Add(one, left)
		}
	}
	return own
}

// leastTerm returns the term of a class that matters least, -1 if the error is above a limit without any.
func (s *Samples) leastTerm(first int, without []bool, limit float64) (best int) {
	best = -1
	for j := first; j < first+s.Terms; j++ {
		if without[j] {
			continue
		}
		without[j] = true
		if e := s.meanError(s.FitWithout(without)); e <= limit {
			best, limit = j, e
		}
		without[j] = false
	}
	return best
}

func (s *Samples) meanError(rates []float64) (sum float64) {
	for i, amounts := range s.Amounts {
		sum += math.Abs(Time(amounts, rates)/s.Times[i]-1) / float64(len(s.Times))
	}
	return sum
}

// FitWithout fits the rates of all terms but some. Outliers count less: the sum of the errors is smallest, not that of their
// squares.
func (s *Samples) FitWithout(without []bool) (rates []float64) {
	weights := make([]float64, len(s.Times))
	for i := range weights {
		weights[i] = 1
	}
	for range 8 {
		rates = s.leastSquares(weights, without)
		for i, amounts := range s.Amounts {
			weights[i] = 1 / max(0.1, math.Abs(Time(amounts, rates)/s.Times[i]-1))
		}
	}
	return rates
}

// leastSquares minimizes the weighted sum of the squares of the relative errors.
func (s *Samples) leastSquares(weights []float64, without []bool) []float64 {
	products, right := make([][]float64, len(without)), make([]float64, len(without))
	for j := range products {
		products[j] = make([]float64, len(without))
	}
	var at []int
	var x []float64
	for i, amounts := range s.Amounts {
		at, x = at[:0], x[:0]
		for j, n := range amounts {
			if n != 0 && !without[j] {
				at, x = append(at, j), append(x, n/s.Times[i])
			}
		}
		for a, j := range at {
			right[j] += weights[i] * x[a]
			for b, k := range at {
				products[j][k] += weights[i] * x[a] * x[b]
			}
		}
	}
	return descend(products, right)
}

// descend returns the x of at least 0 for which products·x is nearest to right, by coordinate descent.
func descend(products [][]float64, right []float64) []float64 {
	x, others := make([]float64, len(right)), make([][]int, len(right)) // those that are not 0
	for j := range products {
		for k, p := range products[j] {
			if p != 0 {
				others[j] = append(others[j], k)
			}
		}
	}
	const rounds, small = 3000, 1e-7
	for moved, n := true, 0; moved && n < rounds; n++ {
		moved = false
		for j, list := range others {
			if products[j][j] == 0 {
				continue
			}
			rest := right[j]
			for _, k := range list {
				rest -= products[j][k] * x[k]
			}
			next := max(0, x[j]+rest/products[j][j])
			moved = moved || math.Abs(next-x[j]) > small*next
			x[j] = next
		}
	}
	return x
}
