package layered

// position sets the horizontal positions: those of each rank are the ones nearest to the means of the neighbours that keep
// the order and the gaps.
func (d *drawing) position() {
	n := len(d.g.Widths)
	for r := range d.ranks {
		d.spread(d.ranks[r])
	}
	sweeps := 6
	if len(d.of) > large {
		sweeps = fewSweeps
	}
	for range sweeps {
		for r := 1; r < len(d.ranks); r++ {
			d.align(d.ranks[r], d.up, n)
		}
		for r := len(d.ranks) - 2; r >= 0; r-- {
			d.align(d.ranks[r], d.down, n)
		}
	}
	d.finish()
}

// separation is the distance of the centres of neighbours in a rank.
func (d *drawing) separation(a, b int32) float64 { return (d.widths[a]+d.widths[b])/2 + gap }

// spread puts a rank around 0.
func (d *drawing) spread(rank []int32) {
	at := 0.0
	for i, v := range rank {
		if i > 0 {
			at += d.separation(rank[i-1], v)
		}
		d.x[v] = at
	}
	for _, v := range rank {
		d.x[v] -= at / 2
	}
}

// run is a part of a rank that is moved as one.
type run struct {
	mean, weight float64
	n            int
}

// align moves a rank: a regression that keeps the order, by pooling of neighbours that would overlap.
func (d *drawing) align(rank []int32, neighbours [][]int32, nodes int) {
	runs := make([]run, 0, len(rank))
	offset := 0.0
	for i, v := range rank {
		if i > 0 {
			offset += d.separation(rank[i-1], v)
		}
		want, weight := d.wish(v, neighbours[v], nodes)
		runs = append(runs, run{want - offset, weight, 1})
		for k := len(runs) - 1; k > 0 && runs[k-1].mean > runs[k].mean; k-- {
			a, b := runs[k-1], runs[k]
			runs[k-1] = run{(a.mean*a.weight + b.mean*b.weight) / (a.weight + b.weight), a.weight + b.weight, a.n + b.n}
			runs = runs[:k]
		}
	}
	offset = 0
	i := 0
	for _, r := range runs {
		for range r.n {
			if i > 0 {
				offset += d.separation(rank[i-1], rank[i])
			}
			d.x[rank[i]] = r.mean + offset
			i++
		}
	}
}

// wish returns the mean position of neighbours and the weight of the wish.
func (d *drawing) wish(v int32, neighbours []int32, nodes int) (at, weight float64) {
	for _, u := range neighbours {
		w := 1.0
		if int(v) >= nodes && int(u) >= nodes {
			w = straight
		}
		at += w * d.x[u]
		weight += w
	}
	if weight == 0 {
		return d.x[v], .1
	}
	return at / weight, weight
}

// finish moves the drawing to 0 and stores the positions.
func (d *drawing) finish() {
	if len(d.x) == 0 {
		return
	}
	lo, hi := d.x[0]-d.widths[0]/2, d.x[0]+d.widths[0]/2
	for v, x := range d.x {
		lo, hi = min(lo, x-d.widths[v]/2), max(hi, x+d.widths[v]/2)
	}
	for v := range d.x {
		d.x[v] -= lo
	}
	d.out.Width = hi - lo
	d.out.X = d.x[:len(d.g.Widths)]
	for i, e := range d.g.Edges {
		if b := d.first[i]; b >= 0 {
			d.out.Bends[i] = d.x[b : int(b)+d.out.Rank[e.To]-d.out.Rank[e.From]-1]
		}
	}
}
