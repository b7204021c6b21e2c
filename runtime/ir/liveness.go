package ir

import "math/bits"

// Bounds of the exact analysis of methods with jumps. Beyond them every storage of the method
// counts as live throughout; no exporter writes such methods.
const (
	maxLiveWords = 1 << 22 // of 64 storages at one step
	maxLiveWork  = 1 << 26 // words visited: nested backward jumps take one sweep each
)

// setLifetimes computes First and Last of every storage, and turns activations whose bytes are read
// before they are written into state.
func (m *Method) setLifetimes() {
	for i := range m.Storages {
		m.Storages[i].First, m.Storages[i].Last = never, -1
	}
	words := (len(m.Storages) + 63) / 64
	switch {
	case m.Coarse:
		m.fullLifetimes()
	case !m.HasJumps():
		m.straightLifetimes()
	case len(m.Steps)*words > maxLiveWords || !m.dataflowLifetimes(words):
		m.fullLifetimes()
	}
	for i := range m.Storages {
		s := &m.Storages[i]
		switch {
		case s.Kind == Input:
			s.First = -1
		case s.Kind == State || s.Kind == Activation && s.First == -1:
			s.Kind, s.First, s.Last = State, -1, len(m.Steps)
		}
		if s.Output {
			s.First, s.Last = min(s.First, len(m.Steps)), len(m.Steps)
		}
	}
}

// HasJumps reports whether the steps may be executed in another order than that of the list.
func (m *Method) HasJumps() bool {
	for i := range m.Steps {
		if m.Steps[i].IsJump() {
			return true
		}
	}
	return false
}

// touch extends a value's storage to step i. A read before any write extends it to before the first
// step.
func (m *Method) touch(v, i int, read bool) {
	s := &m.Storages[m.Values[v].Storage]
	if s.First == never {
		s.First = i
		if read {
			s.First = -1
		}
	}
	s.Last = i
}

func (m *Method) straightLifetimes() {
	for _, v := range m.Inputs {
		for _, v := range m.tensors(nil, v) {
			m.Storages[m.Values[v].Storage].First = -1
		}
	}
	for i := range m.Steps {
		s := &m.Steps[i]
		for _, v := range s.Reads {
			m.touch(v, i, true)
		}
		for _, v := range s.Updates {
			m.touch(v, i, true)
		}
		for _, v := range s.Writes {
			m.touch(v, i, false)
		}
	}
	for i := range m.Storages { // an output that no step writes
		if s := &m.Storages[i]; s.Output && s.First == never {
			s.First = -1
		}
	}
}

func (m *Method) fullLifetimes() {
	m.Coarse = true
	for i := range m.Storages {
		m.Storages[i].First, m.Storages[i].Last = 0, len(m.Steps)
	}
}

// dataflowLifetimes is the textbook backward analysis: the live-in set of a step is its reads, and
// its live-out set minus what it writes whole. It returns false if that exceeds the work bound.
func (m *Method) dataflowLifetimes(words int) bool {
	n := len(m.Steps)
	live := make([]uint64, (n+1)*words) // row i: live into step i; row n: live at the end
	row := func(i int) []uint64 { return live[i*words : (i+1)*words] }
	for i := range m.Storages {
		if m.Storages[i].Output {
			row(n)[i/64] |= 1 << (i % 64)
		}
	}
	in := make([]uint64, words)
	left := maxLiveWork
	for changed := true; changed; {
		if left -= n * words; left < 0 {
			return false
		}
		changed = false
		for i := n - 1; i >= 0; i-- {
			m.liveInto(i, in, row)
			for w, bits := range in {
				if row(i)[w] != bits {
					row(i)[w], changed = bits, true
				}
			}
		}
	}
	m.hulls(words, row)
	return true
}

func (m *Method) liveInto(i int, in []uint64, row func(int) []uint64) {
	s := &m.Steps[i]
	copy(in, row(i+1))
	if s.IsJump() {
		for w, bits := range row(s.Target) {
			in[w] |= bits
		}
	}
	for _, v := range s.Writes {
		st := m.Values[v].Storage
		in[st/64] &^= 1 << (st % 64)
	}
	for _, list := range [...][]int{s.Reads, s.Updates} {
		for _, v := range list {
			st := m.Values[v].Storage
			in[st/64] |= 1 << (st % 64)
		}
	}
}

// hulls sets for each storage the smallest interval of steps that contains all steps where it is
// live or accessed.
func (m *Method) hulls(words int, row func(int) []uint64) {
	extend := func(st, i int) {
		s := &m.Storages[st]
		s.First, s.Last = min(s.First, i), max(s.Last, i)
	}
	for i := range m.Steps {
		for w := range words {
			for b := row(i)[w]; b != 0; b &= b - 1 {
				st := w*64 + bits.TrailingZeros64(b)
				extend(st, i)
				if i == 0 {
					extend(st, -1)
				}
			}
		}
		for _, list := range [...][]int{m.Steps[i].Reads, m.Steps[i].Writes, m.Steps[i].Updates} {
			for _, v := range list {
				extend(m.Values[v].Storage, i)
			}
		}
	}
	m.endHulls(words, row)
}

func (m *Method) endHulls(words int, row func(int) []uint64) {
	n := len(m.Steps)
	for w := range words {
		for b := row(n)[w]; b != 0; b &= b - 1 {
			s := &m.Storages[w*64+bits.TrailingZeros64(b)]
			s.First, s.Last = min(s.First, n), n
		}
	}
}
