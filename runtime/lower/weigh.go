package lower

import (
	"fmt"
	"time"

	"github.com/etrun-go/etrun/internal/duration"
)

// The minimum saving relative to the present time of a region, estimated or measured: estimates are no more accurate, and
// measurements vary.
const margin, measuredMargin = 0.03, 0.03

// weigh measures a region, and sets its reason if it does not gain enough.
func (l *lowering) weigh(c *candidate, r *Region) error {
	if l.Measure == nil || l.MinProfit < 0 {
		return nil
	}
	measured, ok := Times{}, false
	if r.Portable >= l.MinProfit {
		var err error
		if measured, ok, err = l.Measure(l.ctx, c.taker, c.graph.Graph); err != nil {
			return err
		}
	}
	if ok {
		r.Measured = measured
		r.Reason = l.loses(c, measured, measuredMargin, "")
	} else {
		r.Reason = l.loses(c, r.Times, margin, "about ")
	}
	return nil
}

// loses returns the reason of a region that does not gain enough in these times, "" if it does.
// share is the minimum gain, relative to the present time.
func (l *lowering) loses(c *candidate, t Times, share float64, about string) string {
	if profit := t.Portable - t.Lowered; l.MinProfit < 0 || profit >= l.MinProfit && profit >= c.least(share, t.Portable) {
		return ""
	}
	return fmt.Sprintf("it would take %s%s, and %s without lowering", about, duration.Format(t.Lowered), duration.Format(t.Portable))
}

// least returns the minimum saving of a region that takes this long at present. The part of its payloads does not count: it
// is estimated alike on both sides.
func (c *candidate) least(share float64, takes time.Duration) time.Duration {
	return time.Duration(share * float64(takes-min(inPayloads(c.graph.Graph), takes)))
}

// share returns the smallest share of varying sizes at which a region pays off that does at the
// declared sizes. Its time is the sum of a constant part and one proportional to the sizes.
func (l *lowering) share(c *candidate, r *Region) float64 {
	if l.MinProfit < 0 || !c.graph.varies() {
		return 0
	}
	t, share := r.Times, margin
	least, err := c.taker.Estimate(c.graph.Graph, 0)
	if err != nil {
		return 1
	}
	none := Times{baseline(c.graph.Graph, 0), least}
	if r.Measured != (Times{}) {
		t, share = r.Measured, measuredMargin
		none.Portable = scaled(none.Portable, t.Portable, r.Portable)
		none.Lowered = scaled(none.Lowered, t.Lowered, r.Lowered)
	}
	gain := func(t Times) float64 { return (1-share)*float64(t.Portable) - float64(t.Lowered) }
	if gain(none) >= 0 {
		return 0
	}
	return gain(none) / (gain(none) - gain(t))
}
