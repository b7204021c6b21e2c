package load

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
)

var errBusy = errors.New("all clients waited for answers")

// Level is what was measured at one level. Counts and times are of the requests that were due after the warm-up.
type Level struct {
	Clients int     `json:"clients,omitempty"` // of a closed loop
	Rate    float64 `json:"rate,omitempty"`    // requests per second that were due, of an open loop
	Seconds float64 `json:"seconds"`           // time of the measurement, without warm-up

	Answered   int            `json:"answered"`   // requests answered with success
	Failed     int            `json:"failed"`     // all others
	Throughput stats.Estimate `json:"throughput"` // answers per second
	Latency    Times          `json:"latency_ms"` // from when a request was due to the end of its answer
	SendDelay  *Times         `json:"send_delay_ms,omitempty"`

	FirstToken *Times          `json:"first_token_ms,omitempty"`    // of texts: from when the request was due
	Between    *Times          `json:"between_tokens_ms,omitempty"` // of texts: between events with tokens
	Tokens     *stats.Estimate `json:"tokens_per_second,omitempty"` // of texts: generated tokens

	Errors []Errors `json:"errors"`

	Curve    []Mark `json:"-"` // latency by percentile, for drawings
	Timeline []Slot `json:"-"`
}

// Times summarizes a series of times, in milliseconds.
type Times struct {
	N   int            `json:"n"`
	Min float64        `json:"min"`
	P50 stats.Estimate `json:"p50"`
	P90 stats.Estimate `json:"p90"`
	P95 stats.Estimate `json:"p95"`
	P99 stats.Estimate `json:"p99"`
	Max float64        `json:"max"`
}

// Errors are the failed requests of a class.
type Errors struct {
	Class   Class  `json:"class"`
	Count   int    `json:"count"`
	Example string `json:"example"` // the message of the first one
}

// Mark is a latency in milliseconds that so many per cent of the requests do not exceed.
type Mark struct{ Percent, Latency float64 }

// Slot is a part of the time of a level, which begins at a number of seconds.
type Slot struct {
	Begin     float64
	P50, P99  float64 // milliseconds, of N requests
	N, Failed int
	PerSecond float64 // answers
}

// blocks is the number of equal parts of the time of a level.
const blocks = 30

// series collects points of one figure.
type series struct {
	points []stats.Point
	window
}

// window is the time of a level after its warm-up.
type window struct{ begin, length time.Duration }

// block returns the part of the time with a moment; those outside are in the first or the last.
func (w window) block(at time.Duration) int {
	return min(max(int(float64(at-w.begin)/float64(w.length)*blocks), 0), blocks-1)
}

func (w window) contains(at time.Duration) bool { return at >= w.begin && at < w.begin+w.length }

func (s *series) add(at, value time.Duration) {
	s.points = append(s.points, stats.Point{Block: s.block(at), Value: value})
}

// times summarizes the points.
func (s *series) times() Times {
	if len(s.points) == 0 {
		return Times{}
	}
	by := func(a, b stats.Point) int { return cmp.Compare(a.Value, b.Value) }
	e := stats.Percentiles(s.points, blocks, 50, 90, 95, 99)
	least, most := slices.MinFunc(s.points, by).Value, slices.MaxFunc(s.points, by).Value
	return Times{len(s.points), stats.MS(least), e[0], e[1], e[2], e[3], stats.MS(most)}
}

// level summarizes the samples.
func (r *run) level() *Level {
	w := window{r.Warmup, r.Duration}
	if r.stopped > 0 {
		w.length = max(r.stopped-r.Warmup, 0)
	}
	l := &Level{Clients: r.Clients, Rate: r.Rate, Seconds: w.length.Seconds(), Errors: []Errors{}}
	if w.length == 0 {
		return l
	}
	sort.Slice(r.samples, func(i, k int) bool { return r.samples[i].due < r.samples[k].due })
	t := newTally(w, r.begun)
	for i := range r.samples {
		t.add(&r.samples[i])
	}
	t.fill(l)
	return l
}

// tally adds up samples.
type tally struct {
	window
	begun                          time.Time
	latency, delay, first, between series
	answers, tokens                [blocks]float64
	slots                          [blocks]series
	failed                         [blocks]int
	errors                         map[Class]*Errors
}

func newTally(w window, begun time.Time) *tally {
	t := &tally{window: w, begun: begun, errors: make(map[Class]*Errors)}
	for _, s := range []*series{&t.latency, &t.delay, &t.first, &t.between} {
		s.window = w
	}
	return t
}

// add adds a sample. Throughput counts the answers that arrived in the window, times are those of the requests that were due in it.
func (t *tally) add(s *sample) {
	if s.failed == nil && t.contains(s.end) {
		t.answers[t.block(s.end)]++
		t.tokens[t.block(s.end)] += float64(s.answer.Tokens)
	}
	if !t.contains(s.due) {
		return
	}
	t.delay.add(s.due, s.sent-s.due)
	if s.failed != nil {
		t.fail(s)
		return
	}
	t.latency.add(s.due, s.end-s.due)
	t.slots[t.block(s.due)].points = append(t.slots[t.block(s.due)].points, stats.Point{Value: s.end - s.due})
	if n := len(s.answer.Events); n > 0 {
		t.first.add(s.due, s.answer.Events[0].Sub(t.begun)-s.due)
		for i := 1; i < n; i++ {
			t.between.add(s.due, s.answer.Events[i].Sub(s.answer.Events[i-1]))
		}
	}
}

func (t *tally) fail(s *sample) {
	t.failed[t.block(s.due)]++
	e := t.errors[s.failed.Class]
	if e == nil {
		e = &Errors{Class: s.failed.Class, Example: fmt.Sprintf("%.*s", maxShown, s.failed.Err)}
		t.errors[s.failed.Class] = e
	}
	e.Count++
}

// fill sets the figures of a level.
func (t *tally) fill(l *Level) {
	l.Answered = len(t.latency.points)
	l.Throughput = stats.Total(t.answers[:], l.Seconds)
	l.Latency = t.latency.times()
	if delay := t.delay.times(); l.Rate > 0 {
		l.SendDelay = &delay
	}
	if len(t.first.points) > 0 {
		first, between, tokens := t.first.times(), t.between.times(), stats.Total(t.tokens[:], l.Seconds)
		l.FirstToken, l.Between, l.Tokens = &first, &between, &tokens
	}
	for _, class := range slices.Sorted(maps.Keys(t.errors)) {
		l.Errors = append(l.Errors, *t.errors[class])
		l.Failed += t.errors[class].Count
	}
	t.draw(l)
}

// curve are the percentiles of drawings.
var curve = []float64{0, 10, 25, 50, 75, 90, 95, 97.5, 99, 99.5, 99.75, 99.9, 99.95, 99.99, 99.999}

// draw sets what drawings show in addition.
func (t *tally) draw(l *Level) {
	if l.Answered > 0 {
		for i, e := range stats.Percentiles(t.latency.points, 1, curve...) {
			if n := float64(l.Answered) * (100 - curve[i]) / 100; n >= 1 {
				l.Curve = append(l.Curve, Mark{curve[i], e.Value})
			}
		}
	}
	width := l.Seconds / blocks
	for i := range t.slots {
		e := stats.Percentiles(t.slots[i].points, 1, 50, 99)
		l.Timeline = append(l.Timeline, Slot{Begin: float64(i) * width, P50: e[0].Value, P99: e[1].Value,
			N: len(t.slots[i].points), Failed: t.failed[i], PerSecond: t.answers[i] / width})
	}
}
