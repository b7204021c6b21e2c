package exectest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/runtime/exec"
	"github.com/etrun-go/etrun/runtime/plan"
)

// Poison fills all arena bytes that no live storage uses before every kernel and delegate call. The guard finds calls
// that write them.
func Poison(m *exec.Instance, poison byte) *Guard {
	g := &Guard{plan: m.Plan(), poison: poison}
	g.arenas = m.Intercept(g.around)[:len(g.plan.Arenas)]
	return g
}

// Guard overwrites dead bytes of a method, and checks that they stay as they are.
type Guard struct {
	plan    *plan.Memory
	arenas  [][]byte
	poison  byte
	Written error // the first write to dead bytes
}

// spoil overwrites the bytes between the storages that are live at a moment.
func (g *Guard) spoil(moment int) {
	g.eachDead(moment, func(dead []byte) {
		for k := range dead {
			dead[k] = g.poison
		}
	})
}

// check checks the bytes that spoil has overwritten.
func (g *Guard) check(moment int) {
	g.eachDead(moment, func(dead []byte) {
		if k := slices.IndexFunc(dead, func(b byte) bool { return b != g.poison }); k >= 0 && g.Written == nil {
			step, m := g.plan.Step(moment), g.plan.Method
			g.Written = fmt.Errorf("step %d (%s), moment %d writes byte %d of %d that are not in use", step, m.StepName(&m.Steps[step]),
				moment-g.plan.Moments[step], k, len(dead))
		}
	})
}

// around overwrites dead bytes before a call, and before each moment of it.
func (g *Guard) around(ctx context.Context, step int, do func(context.Context) error) error {
	first, end := g.plan.Moments[step], g.plan.Moments[step+1]
	g.spoil(first)
	if end == first+1 {
		defer g.check(first)
		return do(ctx)
	}
	c := &moments{ctx, g, first, first}
	err := do(c)
	if c.at > first {
		g.check(c.at - 1)
	}
	return err
}

// moments is a context that overwrites the dead bytes of the next moment when its error is asked for:
// units do that once before each.
type moments struct {
	context.Context
	*Guard
	first, at int
}

func (c *moments) Err() error {
	if c.at > c.first {
		c.check(c.at - 1)
	}
	c.spoil(c.at)
	c.at++
	return c.Context.Err()
}

// eachDead calls do for the bytes between the storages that are live at a moment.
func (g *Guard) eachDead(moment int, do func(dead []byte)) {
	for arena, bytes := range g.arenas {
		var alive []int
		for i, it := range g.plan.Items {
			if it.Bytes > 0 && g.plan.Places[i].Arena == arena && it.First <= moment && moment <= it.Last {
				alive = append(alive, i)
			}
		}
		slices.SortFunc(alive, func(a, b int) int { return cmp.Compare(g.plan.Places[a].Offset, g.plan.Places[b].Offset) })
		end := int64(0)
		for _, i := range append(alive, -1) {
			next := int64(len(bytes))
			if i >= 0 {
				next = g.plan.Places[i].Offset
			}
			if end < next {
				do(bytes[end:next])
			}
			if i >= 0 {
				end = max(end, next+g.plan.Items[i].Bytes)
			}
		}
	}
}

// Listing describes the steps and storages of a method.
func Listing(m *exec.Instance) (s string) {
	p := m.Plan()
	for i := range p.Method.Steps {
		in := &p.Method.Steps[i]
		s += fmt.Sprintf("%d %v %s %v -> %d\n", i, in.Kind, p.Method.StepName(in), in.Args, in.Target)
	}
	for i, st := range p.Method.Storages {
		s += fmt.Sprintf("storage %d: %v %v [%d,%d] at %d\n", i, st.Values, st.Kind, st.First, st.Last, p.Places[i].Offset)
	}
	return s
}
