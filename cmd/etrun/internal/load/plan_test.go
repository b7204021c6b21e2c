package load

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a server that answers after a time, by the number of the request, on the clock of a synctest bubble.
type fake struct {
	takes func(n int64) time.Duration
	fails func(n int64) error
}

func (f *fake) Send(ctx context.Context, n int64) (Answer, error) {
	timer := time.NewTimer(f.takes(n))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	case <-timer.C:
	}
	if f.fails != nil {
		return Answer{}, f.fails(n)
	}
	return Answer{}, nil
}

func always(d time.Duration) func(int64) time.Duration { return func(int64) time.Duration { return d } }

const ms = time.Millisecond

// level runs a plan with the clock of a bubble.
func level(t *testing.T, p Plan, f *fake) (l *Level) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { l = p.Run(t.Context(), f) })
	return l
}

// near reports whether two numbers differ by at most one in a hundred.
func near(a, b float64) bool { return math.Abs(a-b) <= 0.01*math.Abs(b)+1e-9 }

// A closed loop has as many requests in progress as clients.
func TestClosedLoop(t *testing.T) {
	for _, clients := range []int{1, 4} {
		l := level(t, Plan{Clients: clients, Warmup: time.Second, Duration: 6 * time.Second}, &fake{takes: always(20 * ms)})
		if want := 50 * float64(clients); !near(l.Throughput.Value, want) || l.Answered != int(6*want) || l.Failed != 0 || l.Seconds != 6 {
			t.Errorf("%d clients: %+v, want %g answers per second", clients, l, want)
		}
		if l.Latency.Min != 20 || l.Latency.P50.Value != 20 || l.Latency.P90.Low != 20 || l.Latency.Max != 20 || l.SendDelay != nil {
			t.Errorf("%d clients: %+v, want 20 ms", clients, l.Latency)
		}
	}
}

// Requests before the end of the warm-up do not count.
func TestWarmup(t *testing.T) {
	slowly := func(n int64) time.Duration {
		if n < 3 {
			return 300 * ms
		}
		return 10 * ms
	}
	l := level(t, Plan{Clients: 1, Warmup: 900 * ms, Duration: time.Second}, &fake{takes: slowly})
	if l.Latency.Max != 10 || l.Answered != 100 {
		t.Errorf("%d answers, the slowest %g ms, want 100 of 10 ms", l.Answered, l.Latency.Max)
	}
}

// An open loop sends requests at its rate, whatever the server does.
func TestOpenLoop(t *testing.T) {
	for _, random := range []bool{false, true} {
		p := Plan{Rate: 200, Random: random, InFlight: 1000, Warmup: time.Second, Duration: 30 * time.Second}
		l := level(t, p, &fake{takes: always(500 * ms)})
		if math.Abs(l.Throughput.Value-200) > 10 || l.Failed != 0 || l.Latency.P50.Value != 500 || l.SendDelay.Max != 0 {
			t.Errorf("random %v: %+v, latency %+v, delay %+v", random, l.Throughput, l.Latency, l.SendDelay)
		}
		if random == (l.Answered == 6000) {
			t.Errorf("random %v: %d answers", random, l.Answered)
		}
	}
}

// If the server stops for a time, the requests that were due meanwhile count with the time that they would have waited, although no client
// was free to send them: 100 requests per second, of which one takes 2 s, and 1 client.
func TestCoordinatedOmission(t *testing.T) {
	once := func(n int64) time.Duration {
		if n == 100 {
			return 2 * time.Second
		}
		return ms
	}
	l := level(t, Plan{Rate: 100, InFlight: 1, Duration: 10 * time.Second}, &fake{takes: once})
	if l.Answered != 1000 || l.Failed != 0 {
		t.Fatalf("%d answered, %d failed", l.Answered, l.Failed)
	}
	if l.Latency.Max != 2000 || l.Latency.P50.Value != 1 || l.Latency.P90.Value < 800 || l.Latency.P90.Value > 1500 {
		t.Errorf("%+v", l.Latency)
	}
	if l.SendDelay.Max < 1900 || l.SendDelay.P50.Value != 0 {
		t.Errorf("delay %+v", l.SendDelay)
	}
}

// Requests for which no client became free until the end have failed. None is forgotten.
func TestUnsent(t *testing.T) {
	l := level(t, Plan{Rate: 100, InFlight: 2, Duration: 10 * time.Second}, &fake{takes: always(100 * ms)})
	if l.Answered+l.Failed != 1000 || math.Abs(float64(l.Answered-200)) > 4 || math.Abs(l.Throughput.Value-20) > 1 {
		t.Errorf("%d answered, %d failed, %+v", l.Answered, l.Failed, l.Throughput)
	}
	if len(l.Errors) != 1 || l.Errors[0].Class != Unsent || l.Errors[0].Count != l.Failed {
		t.Errorf("%+v", l.Errors)
	}
}

// Failures are counted by class, with the first message of each; their times are not latencies.
func TestFailures(t *testing.T) {
	fails := func(n int64) error {
		switch {
		case n%10 == 3:
			return &Failure{Class("status 429"), errors.New("queue full")}
		case n%10 == 5:
			return errors.New("unknown")
		}
		return nil
	}
	slow := func(n int64) time.Duration {
		if fails(n) != nil {
			return 50 * ms
		}
		return 10 * ms
	}
	l := level(t, Plan{Clients: 1, Duration: 18 * time.Second}, &fake{slow, fails})
	if l.Answered != 800 || l.Failed != 200 || l.Latency.Max != 10 {
		t.Errorf("%d answered, %d failed, the slowest %g ms", l.Answered, l.Failed, l.Latency.Max)
	}
	if len(l.Errors) != 2 || l.Errors[0] != (Errors{Bad, 100, "unknown"}) || l.Errors[1] != (Errors{"status 429", 100, "queue full"}) {
		t.Errorf("%+v", l.Errors)
	}
}

// An interrupt ends the level: what was measured until then counts, requests in progress do not.
func TestInterrupt(t *testing.T) {
	for _, p := range []Plan{{Clients: 3}, {Rate: 30, InFlight: 100}} {
		p.Warmup, p.Duration = time.Second, time.Hour
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second+50*ms)
			defer cancel()
			l := p.Run(ctx, &fake{takes: always(100 * ms)})
			if l.Failed != 0 || math.Abs(float64(l.Answered-120)) > 5 || !near(l.Seconds, 4.05) || math.Abs(l.Throughput.Value-30) > 1 {
				t.Errorf("%+v: %d answered, %d failed in %g s, %+v", p, l.Answered, l.Failed, l.Seconds, l.Throughput)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
			defer cancel()
			if l := p.Run(ctx, &fake{takes: always(10 * ms)}); l.Answered+l.Failed != 0 || l.Seconds != 0 {
				t.Errorf("%+v, ended in the warm-up: %+v", p, l)
			}
		})
	}
}

// texts answers with parts at fixed times after the begin.
type texts struct{ gaps []time.Duration }

func (s *texts) Send(ctx context.Context, _ int64) (a Answer, err error) {
	for _, gap := range s.gaps {
		if !await(ctx, gap) {
			return a, ctx.Err()
		}
		a.Events = append(a.Events, time.Now())
	}
	a.Tokens = 2 * len(a.Events)
	return a, nil
}

// Times to the first token, and between tokens.
func TestTextTimes(t *testing.T) {
	var l *Level
	synctest.Test(t, func(t *testing.T) {
		l = (&Plan{Clients: 2, Duration: 20 * time.Second}).Run(t.Context(), &texts{[]time.Duration{70 * ms, 10 * ms, 20 * ms}})
	})
	if l.FirstToken.P50.Value != 70 || l.FirstToken.Max != 70 || l.FirstToken.N != 400 || l.Latency.P50.Value != 100 {
		t.Errorf("first token %+v, latency %+v", l.FirstToken, l.Latency)
	}
	if l.Between.N != 800 || l.Between.Min != 10 || l.Between.P90.Value != 20 || !near(l.Tokens.Value, 120) {
		t.Errorf("between %+v, %+v tokens per second", l.Between, l.Tokens)
	}
}

// large has answers of many parts, which end in failures.
type large struct{ parts []time.Time }

func (l large) Send(context.Context, int64) (Answer, error) {
	<-time.After(10 * ms) // on the clock of the bubble
	return Answer{Events: l.parts}, &Failure{Bad, errors.New("too much")}
}

// A level with as many samples as are kept ends, in each loop.
func TestMaxSamples(t *testing.T) {
	for _, p := range []Plan{{Clients: 1, Duration: time.Hour}, {Rate: 1, InFlight: 1, Duration: time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			l := p.Run(t.Context(), large{make([]time.Time, MaxSamples/8)})
			if took := time.Since(begun); took > time.Minute || l.Seconds > took.Seconds() || l.Failed < 7 {
				t.Errorf("%+v: %v, %+v", p, took, l)
			}
		})
	}
}

// Of failures only the first one of a class is kept: there may be millions, with long messages.
func TestKeptFailures(t *testing.T) {
	r := &run{Plan: &Plan{}, faults: make(map[Class]*Failure)}
	for range 3 {
		r.add(sample{failed: &Failure{Closed, errors.New("closed")}, answer: Answer{Events: make([]time.Time, 3)}})
		r.add(sample{failed: &Failure{Timeout, errors.New("late")}})
	}
	for i, s := range r.samples {
		if s.failed != r.samples[i%2].failed || s.answer.Events != nil {
			t.Errorf("sample %d: %+v", i, s)
		}
	}
}
