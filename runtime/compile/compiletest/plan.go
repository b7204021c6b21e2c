package compiletest

import (
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// readBehind is how many bytes behind the end of a tensor a delegate may read.
const readBehind = 64

// plan checks one method.
type plan struct {
	*checker
	t         flatbuf.Table
	values    []value
	sizes     []int64
	delegates []delegate
	spans     []span
	steps     int
	fed       map[uint32]bool // planned buffers with arguments of written payloads
	moved     [][2]int32      // sources and targets of moves
}

// delegate is an entry of the table of delegates.
type delegate struct {
	id      string
	payload []byte
}

// span is the part of a method in which a value is mentioned.
type span struct{ first, last int }

func (p *plan) check() {
	for id, name := range map[int]string{0: "name", 1: "container_meta_type", 2: "values", 3: "inputs", 4: "outputs", 5: "chains", 6: "operators", 7: "delegates", 8: "non_const_buffer_sizes"} {
		if !p.t.Has(id) {
			p.fault(3, "%s is absent", name)
		}
	}
	if meta := p.t.Table(1, "container_meta_type"); !meta.Has(0) || !meta.Has(1) {
		p.fault(3, "strings of the container are absent")
	}
	p.values = readValues(p.t)
	p.sizes = flatbuf.Slice(p.t.Vector(8, "sizes", 8), flatbuf.Vector.Int64)
	if len(p.sizes) == 0 || p.sizes[0] != 0 {
		p.fault(6, "non_const_buffer_sizes %d", p.sizes)
		return
	}
	p.spans = slices.Repeat([]span{{1 << 30, -2}}, len(p.values))
	for v := range p.values {
		p.value(v)
	}
	p.fed = make(map[uint32]bool)
	flatbuf.Each(p.t, 7, "delegates", p.delegate)
	flatbuf.Each(p.t, 5, "chains", p.chain)
	p.mention(3, -1)
	p.mention(4, p.steps)
	p.alias()
	p.overlaps()
	p.margins()
}

// feed records the planned buffers that arguments of delegates are in.
func (p *plan) feed(args []int32) {
	for _, v := range args {
		if v >= 0 && int(v) < len(p.values) && p.values[v].memory > 0 {
			p.fed[p.values[v].memory] = true
		}
	}
}

// mention extends the spans of inputs or outputs.
func (p *plan) mention(id, at int) {
	for _, v := range flatbuf.Slice(p.t.Vector(id, "list", 4), flatbuf.Vector.Int32) {
		p.touch(int64(v), at)
	}
}

// touch extends the span of a value and of its items.
func (p *plan) touch(v int64, at int) {
	if v < 0 || v >= int64(len(p.values)) {
		p.fault(4, "value %d of %d", v, len(p.values))
		return
	}
	s := &p.spans[v]
	s.first, s.last = min(s.first, at), max(s.last, at)
	if tag := p.values[v].tag; tag == tagTensorList || tag == tagOptional {
		for _, item := range p.values[v].items {
			if item >= 0 {
				p.touch(item, at)
			}
		}
	}
}

func (p *plan) value(v int) {
	x := &p.values[v]
	for _, item := range x.items {
		switch {
		case item == -1 && x.tag == tagOptional:
		case item < 0 || item >= int64(len(p.values)):
			p.fault(4, "value %d has the item %d", v, item)
		case x.tag == tagIntList && p.values[item].tag != tagInt && p.values[item].tag != tagNull:
			p.fault(4, "value %d has an item that is no number", v)
		case x.tag != tagIntList && (item >= int64(v) || p.values[item].tag != tagTensor && (x.tag == tagTensorList || p.values[item].tag != tagNull)):
			p.fault(4, "value %d has the item %d, which is no tensor before it", v, item)
		}
	}
	if x.tag == tagTensor {
		p.tensor(v, x)
	}
}

func (p *plan) tensor(v int, x *value) {
	seen := make(map[uint8]bool)
	for _, d := range x.order {
		seen[d] = int(d) < len(x.sizes)
	}
	bad := slices.ContainsFunc(x.sizes, func(s int32) bool { return s < 0 })
	if _, known := elementSize[x.dtype]; x.offset != 0 || bad || x.absent || !known || x.dynamism > 1 || len(x.order) != len(x.sizes) || len(seen) != len(x.sizes) {
		p.fault(5, "value %d is %+v", v, x)
	}
	if x.memory > 0 && (int64(x.memory) >= int64(len(p.sizes)) || x.place%16 != 0 || x.place+x.bytes() > uint64(p.sizes[x.memory])) {
		p.fault(6, "value %d, %d bytes at %d of memory %d, sizes %d", v, x.bytes(), x.place, x.memory, p.sizes)
	}
	p.external(v, x)
	if x.constant > 0 && x.memory == 0 && !x.external {
		if int(x.constant) >= len(p.constants) || p.constants[x.constant]+x.bytes() > uint64(len(p.constant)) {
			p.fault(2, "value %d, constant %d of %d", v, x.constant, len(p.constants))
		}
	}
}

// external checks a tensor in a data file.
func (p *plan) external(v int, x *value) {
	if !x.external || len(p.beside) == 0 {
		return
	}
	if data, ok := p.named[x.key]; !ok || uint64(len(data)) < x.bytes() {
		p.fault(2, "value %d of %d bytes has the key %q, of %d bytes", v, x.bytes(), x.key, len(data))
	}
	if got := p.layouts[x.key]; got != layoutText(x.dtype, x.sizes, x.order) {
		p.fault(2, "value %d is %v, its data %q %s", v, x, x.key, got)
	}
}

func (p *plan) delegate(t flatbuf.Table) {
	d := delegate{id: t.String(0, "id")}
	at := t.Table(1, "processed")
	i := at.Uint32(1, "index", 0)
	if at.Int8(0, "location", 0) != 1 || int64(i) >= int64(len(p.segments)) {
		p.fault(10, "delegate %d: processed %d", len(p.delegates), i)
	} else {
		d.payload = p.segments[i]
	}
	if !t.Has(2) {
		p.fault(10, "delegate %d: compile_specs is absent", len(p.delegates))
	}
	p.delegates = append(p.delegates, d)
}

// Fields of instructions, by tag: their lists of values, and fields with a value.
const (
	kernelCall = iota + 1
	delegateCall
	moveCall
	jumpFalse
	freeCall
)

func (p *plan) chain(t flatbuf.Table) {
	base, n := p.steps, t.Vector(2, "instructions", 4).Len()
	if !t.Has(2) {
		p.fault(3, "a chain without instructions")
	}
	if k := t.Vector(3, "stacktrace", 4).Len(); k != 0 && k != n {
		p.fault(3, "%d stack traces of %d instructions", k, n)
	}
	var loops []span
	operators := p.t.Vector(6, "operators", 4).Len()
	flatbuf.Each(t, 2, "instructions", func(t flatbuf.Table) {
		tag, in := t.Union(0, "instr_args")
		switch tag {
		case kernelCall, delegateCall:
			args := flatbuf.Slice(in.Vector(1, "args", 4), flatbuf.Vector.Int32)
			for _, v := range args {
				p.touch(int64(v), p.steps)
			}
			i := in.Int32(0, "index", 0)
			if tag == kernelCall && (i < 0 || int(i) >= operators) {
				p.fault(4, "operator %d of %d", i, operators)
			}
			if tag == delegateCall {
				p.call(int(i), args)
			}
		case moveCall:
			move := [2]int32{in.Int32(0, "from", 0), in.Int32(1, "to", 0)}
			p.touch(int64(move[0]), p.steps)
			p.touch(int64(move[1]), p.steps)
			p.moved = append(p.moved, move)
		case jumpFalse:
			p.touch(int64(in.Int32(0, "cond", 0)), p.steps)
			to := int(in.Int32(1, "destination", 0))
			if to < 0 || to > n {
				p.fault(9, "a jump to %d of %d", to, n)
			}
			if base+to <= p.steps {
				loops = append(loops, span{base + to, p.steps})
			}
		case freeCall:
			p.touch(int64(in.Int32(0, "value", 0)), p.steps)
		}
		p.steps++
	})
	p.extend(loops)
}

// extend makes values that are used inside and outside a loop live in all of it.
func (p *plan) extend(loops []span) {
	for _, l := range slices.Concat(loops, loops) {
		for v := range p.spans {
			s := &p.spans[v]
			if s.first <= l.last && s.last >= l.first && (s.first < l.first || s.last > l.last) {
				s.first, s.last = min(s.first, l.first), max(s.last, l.last)
			}
		}
	}
}

// alias makes the sources of moves live as long as the targets: a move makes the target an alias of the source's bytes.
func (p *plan) alias() {
	for range p.moved { // a source may be the target of another move
		for _, m := range p.moved {
			if from, to := int(m[0]), int(m[1]); min(from, to) >= 0 && max(from, to) < len(p.spans) {
				p.spans[from].last = max(p.spans[from].last, p.spans[to].last)
			}
		}
	}
}

// call checks the call of a delegate.
func (p *plan) call(i int, args []int32) {
	if i < 0 || i >= len(p.delegates) {
		p.fault(10, "delegate %d of %d", i, len(p.delegates))
		return
	}
	if d := &p.delegates[i]; d.id == "XnnpackBackend" && d.payload != nil && !p.from.payloads[string(d.payload)] {
		p.feed(args)
		(&payload{plan: p, data: d.payload, args: args}).check()
	}
}

// overlaps checks that values that are live at once share no bytes, except those that did in the original program.
func (p *plan) overlaps() {
	for i := range p.values {
		for j := range i {
			a, b := &p.values[i], &p.values[j]
			if s, t := p.spans[i], p.spans[j]; !a.overlaps(b) || s.first > t.last || t.first > s.last {
				continue
			}
			if !p.from.shared[pair(a, b)] {
				p.fault(8, "values %d (%v) at %d and %d (%v) at %d share bytes in steps %v and %v", i, a, a.place, j, b, b.place, p.spans[i], p.spans[j])
			}
		}
	}
}

// margins checks the bytes behind the last value of a planned memory.
func (p *plan) margins() {
	for v := range p.values {
		if x := &p.values[v]; p.fed[x.memory] && int64(x.memory) < int64(len(p.sizes)) && x.place+x.bytes()+readBehind > uint64(p.sizes[x.memory]) {
			p.fault(7, "value %d ends at %d, its memory has %d bytes", v, x.place+x.bytes(), p.sizes[x.memory])
		}
	}
}
