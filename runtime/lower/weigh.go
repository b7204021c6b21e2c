package lower

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/duration"
)

// The minimum saving relative to the present time of a region: estimates are no more accurate, and
// measurements vary.
const (
	margin         = 0.22
	unsureMargin   = 0.4 // of what takes less than unsureTime and has no convolution
	unsureTime     = 2 * time.Microsecond
	surerMargin    = 0.12 // of what takes surerTime or longer
	surerTime      = 50 * time.Microsecond
	payloadMargin  = 0.02
	measuredMargin = 0.03
)

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
		r.Reason = l.loses(c, r.Times, c.marginOf(r.Portable), "about ")
	}
	return nil
}

// loses returns the reason of a region that does not gain enough in these times, "" if it does.
// share is the minimum gain, relative to the present time.
func (l *lowering) loses(c *candidate, t Times, share float64, about string) string {
	if profit := t.Portable - t.Lowered; l.MinProfit < 0 || profit >= l.MinProfit && profit >= c.margin(share, t.Portable) {
		return ""
	}
	return fmt.Sprintf("it would take %s%s, and %s without lowering", about, duration.Format(t.Lowered), duration.Format(t.Portable))
}

// margin returns the minimum saving of a region that takes this long at present. The part of its
// payloads counts less: it is estimated alike on both sides.
func (c *candidate) margin(share float64, takes time.Duration) time.Duration {
	payloads := min(inPayloads(c.graph.Graph), takes)
	return time.Duration(share*float64(takes-payloads) + min(share, payloadMargin)*float64(payloads))
}

// marginOf is that of estimates. Short times of light calls depend on more than their elements;
// convolutions are faster in any case.
func (c *candidate) marginOf(takes time.Duration) float64 {
	switch {
	case takes >= surerTime:
		return surerMargin
	case takes < unsureTime && !c.convolves():
		return unsureMargin
	}
	return margin
}

// convolves reports whether the graph has a convolution.
func (c *candidate) convolves() bool {
	return slices.ContainsFunc(c.graph.Calls, func(call delegate.GraphCall) bool {
		return call.Op != nil && strings.HasPrefix(call.Op.Schema, "aten::convolution.")
	})
}

// share returns the smallest share of varying sizes at which a region pays off that does at the
// declared sizes. Its time is the sum of a constant part and one proportional to the sizes.
func (l *lowering) share(c *candidate, r *Region) float64 {
	if l.MinProfit < 0 || !c.graph.varies() {
		return 0
	}
	t, margin := r.Times, c.marginOf(r.Portable)
	least, err := c.taker.Estimate(c.graph.Graph, 0)
	if err != nil {
		return 1
	}
	none := Times{asTheyAre(c.graph.Graph, 0), least}
	if r.Measured != (Times{}) {
		t, margin = r.Measured, measuredMargin
		none.Portable = scaled(none.Portable, t.Portable, r.Portable)
		none.Lowered = scaled(none.Lowered, t.Lowered, r.Lowered)
	}
	gain := func(t Times) float64 { return (1-margin)*float64(t.Portable) - float64(t.Lowered) }
	if gain(none) >= 0 {
		return 0
	}
	return gain(none) / (gain(none) - gain(t))
}
