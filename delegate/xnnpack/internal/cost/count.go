package cost

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

// LoadOf returns the load of a run of a graph on an engine, as the engine runs it: fused. share is the part of the elements
// that inputs with varying sizes have.
func LoadOf(g *graph.Graph, s []graph.Shape, r *EngineRates, engine int, varies []bool, share float64) *Load {
	c := counter{Graph: g, shapes: s, tiles: r.tiles, engine: engine, part: make([]float64, len(g.Values))}
	for v := range c.part {
		c.part[v] = 1
	}
	for i, v := range g.Args[:g.Inputs] {
		if varies[i] {
			c.part[v] = share
		}
	}
	c.load[classGraph][termStart], c.load[classGraph][termRow] = 1, float64(len(c.Nodes))
	for i := range c.Nodes {
		c.add(&c.Nodes[i])
	}
	if c.weights > nearWeights {
		c.load[classWeights][termWeight] = c.weights
	}
	return &c.load
}

// NodeTime returns the time of a node in the Go engine, in nanoseconds.
func NodeTime(g *graph.Graph, s []graph.Shape, r *EngineRates, n *graph.Node) float64 {
	c := counter{Graph: g, shapes: s, tiles: r.tiles, engine: ByGo}
	var l Load
	kind, a := c.amounts(n)
	l[classGraph][termRow], l[kind] = 1, a
	return l.Nanoseconds(&r.Rates)
}

// add adds a node. Nodes are added in order, since it also sets the part of their outputs.
func (c *counter) add(n *graph.Node) {
	part := 1.0
	for _, v := range n.In {
		if v != graph.None {
			part = min(part, c.part[v])
		}
	}
	for _, v := range n.Out {
		c.part[v] = part
	}
	kind, a := c.amounts(n)
	if products, transforms, ok := c.inBlocks(n); ok {
		kind, a = classProduct32, products
		c.sum(classCopy32, transforms, part)
	}
	c.sum(kind, a, part)
	if len(n.In) > 1 && kind != classDepthwise32 && kind != classDepthwise8 {
		c.weights += a[termWeight] * float64(c.bits(n.In[1])) / 8
	}
	if c.engine != ByGo {
		return
	}
	if n.Then != nil {
		c.sum(classOf(n.Then.Type.Tag), amounts{termElement: float64(c.shapes[n.Out[0]].Numel())}, part)
	}
	if c.bits(n.In[0]) == 16 {
		c.sum(classConvert, amounts{termElement: float64(c.shapes[n.In[0]].Numel() + c.shapes[n.Out[0]].Numel())}, part)
	}
}

// amounts returns a node's class and amounts.
func (c *counter) amounts(n *graph.Node) (class, amounts) {
	switch {
	case n.Type.Convolution || n.Type.Tag == graph.TagFullyConnected:
		return c.product(n)
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		return classBatch, c.batchProduct(n)
	}
	kind, short := classOf(n.Type.Tag), min(c.bits(n.In[0]), c.bits(n.Out[0])) == 8
	if n.Type.Tag == graph.TagConvert {
		kind = c.conversion(n)
	} else if short {
		kind = ofBytes[kind]
	}
	return kind, c.elements(n, kind)
}

// sum adds a part of amounts of a class.
func (c *counter) sum(kind class, a amounts, part float64) {
	c.load[kind][termStart] += a[termStart]
	for t := termStart + 1; t < terms; t++ {
		c.load[kind][t] += part * a[t]
	}
}
