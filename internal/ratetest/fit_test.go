package ratetest

import (
	"math"
	"testing"
)

// TestFit fits exact times of two classes of three terms.
func TestFit(t *testing.T) {
	want := []float64{30, 10, 0, 60, 0, 1}
	s := Samples{Terms: 3}
	for i := range 20 {
		amounts := []float64{1, float64(1 + i%4), 0, float64(i % 3), float64(i % 5 * 10), float64(i * i)}
		s.Add(amounts, Time(amounts, want))
	}
	for j, got := range s.Fit() {
		if math.Abs(got-want[j]) > 1e-3*want[j]+1e-9 {
			t.Errorf("rate %d: got %v, want %v", j, got, want[j])
		}
	}
}

// TestFitOutlier fits times of which one is wrong.
func TestFitOutlier(t *testing.T) {
	s := Samples{Terms: 2}
	for i := range 21 {
		s.Add([]float64{1, float64(i)}, 100+7*float64(i))
	}
	s.Times[9] *= 10
	if got := s.Fit(); math.Abs(got[0]-100) > 5 || math.Abs(got[1]-7) > 0.5 {
		t.Errorf("got %v, want 100 and 7", got)
	}
}
