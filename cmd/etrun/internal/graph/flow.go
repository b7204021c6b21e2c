package graph

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// connecter adds the edges of a loaded method.
type connecter struct {
	*builder
	flow   *ir.Flow
	inputs map[int]int   // by storage: its node
	last   [][]int       // by storage: the last definitions of blocks
	before [][]int       // by block: those that lead to it
	slots  map[int]int   // by value: the node that last wrote the slot
	later  map[int][]int // by value: the steps that write the slot
	loops  [][2]int      // first and last step
	work   int           // remaining steps of searches over blocks
	found  map[[2]int][]int
}

// maxWork is the number of definitions and blocks that are searched: exporters' methods need a small part of it.
const maxWork = 1 << 22

// connect adds the edges of dataflow.
func (b *builder) connect(flow *ir.Flow, inputs []int) {
	c := &connecter{builder: b, flow: flow, inputs: make(map[int]int), slots: make(map[int]int), work: maxWork, found: make(map[[2]int][]int)}
	for k, v := range b.m.Inputs {
		if s := b.m.Values[v].Storage; s >= 0 {
			c.inputs[s] = inputs[k]
		} else {
			c.slots[v] = inputs[k]
		}
	}
	c.last = make([][]int, len(b.m.Storages))
	for d := range flow.Defs {
		if def := &flow.Defs[d]; def.Next == ir.None && def.Step != ir.Entry {
			c.last[def.Storage] = append(c.last[def.Storage], d)
		}
	}
	c.findPaths()
	c.findLoops()
	for i := range b.m.Steps {
		c.step(i)
	}
	c.outputs()
}

// findPaths lists the blocks that lead to each block.
func (c *connecter) findPaths() {
	c.before = make([][]int, len(c.flow.Blocks)+1)
	for k, block := range c.flow.Blocks {
		last := &c.m.Steps[block.To-1]
		c.before[k+1] = append(c.before[k+1], k)
		if last.IsJump() {
			to := len(c.flow.Blocks)
			if last.Target < len(c.m.Steps) {
				to = c.flow.Steps[last.Target].Block
			}
			c.before[to] = append(c.before[to], k)
		}
	}
}

// step adds the edges to a step: of the bytes that it reads, and of scalars.
func (c *connecter) step(i int) {
	s, node := &c.m.Steps[i], c.steps[i]
	reads := slices.Concat(s.Reads, s.Updates)
	done := make(map[int]bool, len(reads))
	for k, d := range c.flow.Steps[i].Reads {
		def := &c.flow.Defs[d]
		for _, from := range c.sources(def) {
			if !done[from] {
				done[from] = true
				c.link(from, node, "")
			}
		}
		if def.Step == ir.Entry && node >= 0 {
			c.state(node, reads[k])
		}
	}
	c.scalars(i, node)
}

// sources returns the nodes that wrote a definition.
func (c *connecter) sources(def *ir.Def) []int {
	if def.Step != ir.Entry {
		return c.steps[def.Step : def.Step+1]
	}
	key := [2]int{def.Storage, def.Block}
	if list, ok := c.found[key]; ok {
		return list
	}
	list := c.search(def)
	c.found[key] = list
	return list
}

// search finds the definitions that reach the beginning of a block.
func (c *connecter) search(def *ir.Def) (nodes []int) {
	if c.work -= len(c.last[def.Storage]); c.work < 0 {
		return nil
	}
	defs := make(map[int]int, len(c.last[def.Storage])) // by block
	for _, d := range c.last[def.Storage] {
		defs[c.flow.Defs[d].Block] = c.flow.Defs[d].Step
	}
	visited, queue, entry := make(map[int]bool), slices.Clone(c.before[def.Block]), def.Block == 0
	for len(queue) > 0 && c.work > 0 && len(defs) > 0 {
		k := queue[len(queue)-1]
		if queue = queue[:len(queue)-1]; visited[k] {
			continue
		}
		visited[k] = true
		c.work--
		if step, ok := defs[k]; ok {
			nodes = append(nodes, c.steps[step])
			continue
		}
		entry = entry || k == 0
		queue = append(queue, c.before[k]...)
	}
	if node, ok := c.inputs[def.Storage]; ok && (entry || len(defs) == 0) {
		nodes = append(nodes, node)
	}
	return nodes
}

// state notes at a node that it reads a state as it was before the run.
func (c *connecter) state(node, v int) {
	s := &c.m.Storages[c.m.Values[v].Storage]
	if s.Kind == ir.State && len(c.out.Nodes[node].Facts) < maxFacts {
		c.out.Nodes[node].Facts = append(c.out.Nodes[node].Facts, Fact{"reads state", valuetext.Of(c.m, v)})
	}
}

// scalars adds the edges of numbers in slots.
func (c *connecter) scalars(i, node int) {
	s := &c.m.Steps[i]
	for k, v := range s.Args {
		if reads, _ := s.Uses(k); !reads || v < 0 {
			continue
		}
		c.scalar(v, i, node)
		if c.m.Values[v].Kind == tensor.KindIntList {
			for _, item := range c.m.Values[v].Items() {
				c.scalar(item, i, node)
			}
		}
	}
	c.writes(i, func(v int) { c.slots[v] = node })
}

// scalar adds the edges of a slot to a step: from its last writer, and from the one in a loop around the step.
func (c *connecter) scalar(v, i, node int) {
	if v < 0 || c.m.Values[v].Kind == tensor.KindTensor {
		return
	}
	if from, ok := c.slots[v]; ok {
		c.link(from, node, "")
	}
	for _, loop := range c.loops {
		if loop[0] > i || i > loop[1] {
			continue
		}
		k, _ := slices.BinarySearch(c.later[v], loop[1]+1)
		if k > 0 && c.later[v][k-1] >= i {
			c.link(c.steps[c.later[v][k-1]], node, "")
			return
		}
	}
}

// writes visits the slots that a step writes.
func (c *connecter) writes(i int, visit func(v int)) {
	s := &c.m.Steps[i]
	for k, v := range s.Args {
		if _, writes := s.Uses(k); writes && v >= 0 && c.m.Values[v].Kind != tensor.KindTensor {
			visit(v)
		}
	}
}

// maxLoops is the number of loops that are followed.
const maxLoops = 64

// findLoops lists the jumps back, and the writers of each slot.
func (c *connecter) findLoops() {
	c.later = make(map[int][]int)
	for i := range c.m.Steps {
		c.writes(i, func(v int) { c.later[v] = append(c.later[v], i) })
		if s := &c.m.Steps[i]; s.IsJump() && s.Target <= i && len(c.loops) < maxLoops {
			c.loops = append(c.loops, [2]int{s.Target, i})
		}
	}
}

// outputs adds the nodes of outputs, and the edges to them.
func (c *connecter) outputs() {
	band := len(c.flow.Blocks)
	for k, v := range c.m.Outputs {
		value := &c.m.Values[v]
		n := c.end(kindOutput, fmt.Sprintf("output%d", k), k, v)
		to := c.add(n, max(band-1, 0))
		if value.Storage < 0 {
			if from, ok := c.slots[v]; ok {
				c.link(from, to, "")
			}
			continue
		}
		for _, from := range c.search(&ir.Def{Storage: value.Storage, Block: band}) {
			c.link(from, to, "")
		}
	}
}

// blocks adds the edges of jumps, and the blocks between them.
func (b *builder) blocks(flow *ir.Flow) {
	if len(flow.Blocks) < 2 {
		return
	}
	for i := range b.m.Steps {
		s := &b.m.Steps[i]
		if !s.IsJump() {
			continue
		}
		b.link(b.steps[i], b.shown(i+1), "true")
		b.link(b.steps[i], b.shown(s.Target), "false")
	}
	for k, block := range flow.Blocks {
		b.out.Blocks = append(b.out.Blocks, Block{Name: fmt.Sprintf("block %d: instructions %d to %d", k, block.From, block.To-1)})
	}
}

// shown returns the first node from a step on; behind the last one the first output.
func (b *builder) shown(step int) int {
	for ; step < len(b.steps); step++ {
		if b.steps[step] >= 0 {
			return b.steps[step]
		}
	}
	return slices.IndexFunc(b.out.Nodes, func(n Node) bool { return n.Kind == kindOutput })
}
