package decode

import (
	"math"
	"slices"
	"testing"
)

func TestRuns(t *testing.T) {
	nan := float32(math.NaN())
	frames := []float32{ // 0 is the blank
		0, 1, 0,
		0, 3, 0,
		9, 0, 0,
		0, 2, 0,
		0, 0, 4,
		nan, 0, 5,
		nan, nan, nan,
	}
	got := Runs(frames, 3, 0)
	want := []Run{{1, 0, 2, 3}, {1, 3, 1, 2}, {2, 4, 2, 5}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if line := Text(got, []string{"", "a", "b"}); line.Text != "aab" || math.Abs(float64(line.Score)-10.0/3) > 1e-6 {
		t.Errorf("got %+v, want aab", line)
	}
	if got := Runs([]float32{1, 2}, 2, 0); len(got) != 1 || got[0].Class != 1 {
		t.Errorf("one frame: %v", got)
	}
	if got := Runs(nil, 0, 0); got != nil {
		t.Errorf("nothing: %v", got)
	}
}

func TestSpans(t *testing.T) {
	p := []float32{0, .6, .4, .2, .7, .1, .1, .1, .9, float32(math.NaN())}
	for _, tt := range []struct {
		o    SpanOptions
		want []Span
	}{
		{SpanOptions{Threshold: .5, Release: .5}, []Span{{1, 2, .6}, {4, 5, .7}, {8, 9, .9}}},
		{SpanOptions{Threshold: .5, Release: .3}, []Span{{1, 3, .6}, {4, 5, .7}, {8, 9, .9}}},
		{SpanOptions{Threshold: .5, Release: .3, Gap: 2}, []Span{{1, 5, .7}, {8, 9, .9}}},
		{SpanOptions{Threshold: .5, Release: .3, Gap: 2, Least: 2}, []Span{{1, 5, .7}}},
	} {
		if got := Spans(p, tt.o); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %v, want %v", tt.o, got, tt.want)
		}
	}
}

func TestBest(t *testing.T) {
	list := []Box{{0, 0, 10, 10, .5, 0}, {1, 1, 11, 11, .9, 0}, {1, 1, 11, 11, .8, 1}, {20, 20, 30, 30, .7, 0}}
	got := Best(slices.Clone(list), .45, MaxBoxes)
	want := []Box{list[1], list[2], list[3]}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Best(list, 1, 2); len(got) != 2 {
		t.Errorf("at most two: %v", got)
	}
}

func TestRows(t *testing.T) {
	nan := float32(math.NaN())
	values := []float32{
		10, 20, 4, 6, .1, .9,
		10, 20, 4, 6, .1, .2, // below the score
		10, 20, -4, 6, .1, .9, // no area
		nan, 20, 4, 6, .1, .9,
	}
	want := []Box{{8, 17, 12, 23, .9, 1}}
	for name, v := range map[string][]float32{"rows": values, "columns": Transposed(Transposed(values, 4, 6), 6, 4)} {
		if got, err := Rows(v, 6, false, .5); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v %v, want %v", name, got, err, want)
		}
	}
	if got, err := Rows(values[:6], 6, true, .05); err != nil || len(got) != 1 || got[0].Class != 0 || math.Abs(float64(got[0].Score)-.09) > 1e-6 {
		t.Errorf("with objectness: got %v %v", got, err)
	}
	if _, err := Rows(values, 4, false, .5); err == nil {
		t.Error("rows of 4: no error")
	}
}

func TestMap(t *testing.T) {
	p := []float32{
		.9, 0, 0, 0, 0, 0,
		0, .7, 0, 0, .8, .8,
		0, 0, 0, 0, .8, .8,
		.4, 0, 0, 0, 0, 0,
	}
	got := Map(p, 6, 4, MapOptions{Threshold: .3, Score: .5})
	want := []Box{{0, 0, 2, 2, .8, 0}, {4, 1, 6, 3, .8, 0}}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] && math.Abs(float64(got[i].Score-want[i].Score)) > 1e-6 {
			t.Errorf("box %d: got %v, want %v", i, got[i], want[i])
		}
	}
	grown := Map(p, 6, 4, MapOptions{Threshold: .3, Score: .5, Grow: 2})
	if g := grown[1]; g.Left != 3 || g.Top != 0 || g.Right != 6 || g.Bottom != 4 {
		t.Errorf("grown: got %v, want 3,0 to 6,4", g)
	}
	if got := Map(p, 6, 4, MapOptions{Threshold: .3, Least: 2}); len(got) != 2 {
		t.Errorf("of two pixels at least: got %v", got)
	}
}
