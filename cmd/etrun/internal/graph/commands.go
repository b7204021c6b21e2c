package graph

import (
	"fmt"

	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
)

// stream is the operations of a command stream with their cycles.
type stream struct {
	operations []npu.Operation
	cycles     []float64
	looked     int // operations that were compared with reads
}

// Limits of the search for the operations that wrote the bytes of a read: of one, and of all of a stream.
const (
	maxBack   = 4096
	maxLooked = 1 << 24
)

// commands decodes the command stream of an Ethos-U delegate; nil for others.
func (u *unfolder) commands() *stream {
	payload := u.npuPayload(u.s.Delegate)
	if payload == nil {
		return nil
	}
	p, err := ethosu.Commands(payload, u.prog)
	if err != nil {
		return nil
	}
	program, err := npu.Decode(p.Config, p.Stream)
	if err != nil || program.Len() != len(u.info.Nodes) {
		return nil
	}
	timings := npu.DefaultTimings(p.Config.Family, program.Footprint()[2] > 0)
	costs := program.Costs(&timings)
	s := &stream{operations: program.Operations()}
	for i := range costs {
		s.cycles = append(s.cycles, max(float64(costs[i].Cycles), timings.Wait(&costs[i])))
	}
	return s
}

// connectCommands adds the edges of a command stream: an operation follows those that wrote the bytes that it reads.
func (u *unfolder) connectCommands(s *stream) {
	first := u.s.Inputs
	read := make([]bool, len(s.operations))
	for k := range s.operations {
		op, node := &s.operations[k], &u.list[first+k]
		node.Cycles = round(s.cycles[k])
		var froms []int
		outside := false
		for _, r := range op.Reads {
			node.Facts = append(node.Facts, Fact{"reads " + r.What, fmt.Sprintf("region %d, bytes %d to %d", r.Region, r.Lo, r.Hi)})
			list := s.writers(k, r)
			outside = outside || len(list) == 0 && r.Region != constantRegion
			froms = append(froms, list...)
		}
		for _, w := range op.Writes {
			node.Bytes += w.Hi - w.Lo
			node.Facts = append(node.Facts, Fact{"writes " + w.What, fmt.Sprintf("region %d, bytes %d to %d", w.Region, w.Lo, w.Hi)})
		}
		for _, from := range unique(froms) {
			read[from] = true
			u.edge(first+from, first+k)
		}
		for in := 0; outside && in < u.s.Inputs; in++ {
			u.edge(in, first+k)
		}
	}
	u.ends(read)
}

// constantRegion is the region of weights.
const constantRegion = 0

// ends connects the operations that no other reads with the outputs.
func (u *unfolder) ends(read []bool) {
	for k := range read {
		for out := u.s.Inputs + len(read); !read[k] && out < len(u.list); out++ {
			u.edge(u.s.Inputs+k, out)
		}
	}
}

// writers returns the last operations before operation k that wrote parts of a range.
func (s *stream) writers(k int, r npu.Range) (list []int) {
	left, end := r.Hi-r.Lo, max(k-maxBack, 0)
	for k--; k >= end && left > 0 && s.looked < maxLooked; k-- {
		s.looked++
		for _, w := range s.operations[k].Writes {
			if n := min(w.Hi, r.Hi) - max(w.Lo, r.Lo); w.Region == r.Region && n > 0 {
				list = append(list, k)
				left -= n
			}
		}
	}
	return list
}
