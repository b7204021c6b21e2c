package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// script drives a scheduler step by step: texts end in the order in which they have begun.
type script struct {
	*scheduler
	running, waiting []*scripted
	order            []string // of the texts that have begun
}

// scripted is a request with a number of texts.
type scripted struct {
	client Client
	name   string
	texts  int
	w      *waiter
}

// send sends a request.
func (x *script) send(client, name string, texts int) {
	r := &scripted{client: Client{Credential: client}, name: name, texts: texts}
	r.w = x.arrive(r.client)
	x.place(r)
}

// place notes that a request runs, or waits.
func (x *script) place(r *scripted) {
	if r.w != nil {
		x.waiting = append(x.waiting, r)
		return
	}
	x.running, x.order = append(x.running, r), append(x.order, r.name)
}

// step ends a text.
func (x *script) step() {
	r := x.running[0]
	x.running = x.running[1:]
	if r.texts--; r.texts == 0 {
		x.release(r.client)
	} else {
		r.w = x.pause(r.client)
		x.place(r)
	}
	for _, next := range slices.Clone(x.waiting) {
		select {
		case <-next.w.ready:
			x.waiting = slices.DeleteFunc(x.waiting, func(r *scripted) bool { return r == next })
			next.w = nil
			x.place(next)
		default:
		}
	}
}

// The order of texts does not depend on how many a client has sent, or one of its requests has.
func TestShares(t *testing.T) {
	type request struct {
		client, name string
		texts        int
	}
	for name, c := range map[string]struct {
		instances int
		requests  []request
		want      string
	}{
		"one client, in order":  {1, []request{{"a", "1", 1}, {"a", "2", 1}, {"a", "3", 1}}, "1 2 3"},
		"alone":                 {2, []request{{"a", "1", 3}}, "1 1 1"},
		"texts of requests":     {1, []request{{"a", "1", 3}, {"a", "2", 3}, {"a", "3", 3}}, "1 2 1 3 2 1 3 2 3"},
		"another client":        {1, []request{{"a", "1", 4}, {"a", "2", 4}, {"b", "x", 1}}, "1 x 2 1 2 1 2 1 2"},
		"clients alternate":     {1, []request{{"a", "1", 1}, {"a", "2", 1}, {"a", "3", 1}, {"b", "x", 1}, {"b", "y", 1}}, "1 x 2 y 3"},
		"a short request":       {1, []request{{"a", "1", 5}, {"a", "2", 5}, {"a", "3", 1}}, "1 2 1 3 2 1 2 1 2 1 2"},
		"even parts":            {2, []request{{"a", "1", 3}, {"a", "2", 3}, {"b", "x", 3}}, "1 2 x 1 x 2 x 1 2"},
		"a client of instances": {3, []request{{"a", "1", 2}, {"a", "2", 2}, {"a", "3", 2}, {"b", "x", 1}, {"c", "y", 1}}, "1 2 3 x y 1 2 3"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &script{scheduler: newScheduler(c.instances)}
			for _, r := range c.requests {
				x.send(r.client, r.name, r.texts)
			}
			for len(x.running) > 0 {
				if len(x.running) > c.instances {
					t.Fatalf("%d requests run on %d instances", len(x.running), c.instances)
				}
				x.step()
			}
			if got := strings.Join(x.order, " "); got != c.want {
				t.Errorf("texts began in the order %s, want %s", got, c.want)
			}
			if len(x.waiting)+len(x.scheduler.waiting)+len(x.clients)+x.count() != 0 {
				t.Errorf("at the end %d wait, %d run, of %d clients", len(x.waiting), x.count(), len(x.clients))
			}
		})
	}
}

// Requests with many texts continue although short ones come again and again, of the same client or of others; and short ones wait for
// two texts at most.
func TestNobodyWaitsForever(t *testing.T) {
	for name, short := range map[string]func(i int) string{
		"of the same client": func(int) string { return "a" },
		"of another one":     func(int) string { return "b" },
		"of many":            func(i int) string { return fmt.Sprint("c", i) },
	} {
		t.Run(name, func(t *testing.T) {
			x := &script{scheduler: newScheduler(1)}
			x.send("a", "long", 20)
			x.send("a", "longer", 20)
			for i := range 200 {
				before := len(x.order)
				x.send(short(i), "short", 1)
				for range 3 {
					if slices.Contains(x.order[before:], "short") {
						break
					}
					x.step()
				}
				if !slices.Contains(x.order[before:], "short") {
					t.Fatalf("request %d waits for more than two texts: %v", i, x.order[before:])
				}
			}
			if n := len(x.order) - 200; n < 40 {
				t.Errorf("the long requests have had %d texts beside 200 short ones, want 40", n)
			}
		})
	}
}

var errRefused = errors.New("refused")

// A full queue has room for a client with fewer requests, which replaces the last one of the client with the most.
func TestDisplaced(t *testing.T) {
	s := newScheduler(1)
	many, few := Client{Credential: "many"}, Client{Credential: "few"}
	s.arrive(many)
	var waiting []*waiter
	for range 3 {
		waiting = append(waiting, s.arrive(many))
	}
	if s.preempts(many) || s.preempt(many, errRefused) {
		t.Error("a client displaces a request of its own")
	}
	if !s.preempts(few) || !s.preempt(few, errRefused) {
		t.Fatal("a client without requests displaces none")
	}
	s.arrive(few)
	if s.preempts(few) || s.preempt(few, errRefused) {
		t.Error("a client displaces a request of one with only one more")
	}
	for i, w := range waiting {
		if want := i == 2; (w.err != nil) != want {
			t.Errorf("request %d: refused with %v, want a refusal: %v", i, w.err, want)
		}
	}
	if err := s.wait(t.Context(), many, waiting[2]); !errors.Is(err, errRefused) {
		t.Errorf("the displaced request ends with %v", err)
	}
}

// The end of a context ends a wait, whether or not the request is started at the same time.
func TestEndedWaits(t *testing.T) {
	s := newScheduler(1)
	a, b := Client{Credential: "a"}, Client{Credential: "b"}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.arrive(a)
	if err := s.yield(ended, a); err != nil {
		t.Errorf("alone: %v", err)
	}
	if err := s.acquire(ended, b); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that waits: %v", err)
	}
	w := s.arrive(b)
	s.release(a) // w runs
	if err := s.wait(ended, b, w); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a request that is started: %v", err)
	} else if err == nil {
		s.release(b)
	}
	if s.count() != 0 || len(s.clients) != 0 {
		t.Fatalf("%d run, of %d clients, want none", s.count(), len(s.clients))
	}
	s.arrive(a)
	other := s.arrive(b)
	paused := make(chan error, 1)
	late, stop := context.WithCancel(t.Context())
	go func() { paused <- s.yield(late, a) }()
	<-other.ready
	stop()
	if err := <-paused; !errors.Is(err, context.Canceled) {
		t.Errorf("a request that waits to continue: %v", err)
	}
	s.release(b)
	if s.count() != 0 || len(s.clients) != 0 {
		t.Fatalf("%d run, of %d clients, want none", s.count(), len(s.clients))
	}
	s.arrive(a)
	s.arrive(b)
	w = s.pause(a) // the request of b runs
	first, second := s.arrive(a), s.arrive(a)
	s.release(b) // the first one runs, and the one that continues is next
	if err := s.wait(ended, a, w); !errors.Is(err, context.Canceled) {
		t.Errorf("the one that continues: %v", err)
	}
	s.release(a)
	for _, next := range []*waiter{first, second} {
		if err := s.wait(t.Context(), a, next); err != nil {
			t.Errorf("a request after one that has ended: %v", err)
		}
	}
}
