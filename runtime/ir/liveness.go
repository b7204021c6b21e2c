package ir

import (
	"math/bits"

	"github.com/etrun-go/etrun/runtime/pte"
)

// Bounds of the exact analysis of methods with jumps; beyond them, which no exporter
// reaches, every storage of the method counts as live throughout.
const (
	maxLiveWords = 1 << 22 // of 64 storages at one step
	maxLiveWork  = 1 << 26 // words visited: a ladder of backward jumps takes a sweep for each
)

// setLifetimes finds First and Last of every storage, and turns activations whose
// bytes are read before they are written into state.
func (f *Flow) setLifetimes() {
	for i := range f.Storages {
		f.Storages[i].First, f.Storages[i].Last = never, -1
	}
	words := (len(f.Storages) + 63) / 64
	switch {
	case !f.hasJumps():
		f.straightLifetimes()
	case len(f.Steps)*words > maxLiveWords || !f.dataflowLifetimes(words):
		f.wholeLifetimes()
	}
	for i := range f.Storages {
		s := &f.Storages[i]
		switch {
		case s.Kind == Input:
			s.First = -1
		case s.Kind == State || s.Kind == Activation && s.First == -1:
			s.Kind, s.First, s.Last = State, -1, len(f.Steps)
		}
		if s.Output {
			s.First, s.Last = min(s.First, len(f.Steps)), len(f.Steps)
		}
	}
}

func (f *Flow) hasJumps() bool {
	for i := range f.Steps {
		if f.Steps[i].Instruction.Kind == pte.JumpFalseCall {
			return true
		}
	}
	return false
}

// touch extends a value's storage to step i. A read before any write reaches back
// to before the first step.
func (f *Flow) touch(v, i int, read bool) {
	s := &f.Storages[f.Of[v]]
	if s.First == never {
		s.First = i
		if read {
			s.First = -1
		}
	}
	s.Last = i
}

func (f *Flow) straightLifetimes() {
	for _, v := range f.Method.Inputs {
		for _, v := range tensors(f.Method, nil, v) {
			f.Storages[f.Of[v]].First = -1
		}
	}
	for i := range f.Steps {
		s := &f.Steps[i]
		for _, v := range s.Reads {
			f.touch(v, i, true)
		}
		for _, v := range s.Updates {
			f.touch(v, i, true)
		}
		for _, v := range s.Writes {
			f.touch(v, i, false)
		}
	}
	for i := range f.Storages { // an output that nothing writes
		if s := &f.Storages[i]; s.Output && s.First == never {
			s.First = -1
		}
	}
}

func (f *Flow) wholeLifetimes() {
	for i := range f.Storages {
		f.Storages[i].First, f.Storages[i].Last = 0, len(f.Steps)
	}
}

// dataflowLifetimes is the textbook backward analysis: what is live into a step is
// what it reads, and what is live out of it unless it writes it whole. It reports
// false where that takes more work than allowed.
func (f *Flow) dataflowLifetimes(words int) bool {
	n := len(f.Steps)
	live := make([]uint64, (n+1)*words) // row i: live into step i; row n: live at the end
	row := func(i int) []uint64 { return live[i*words : (i+1)*words] }
	for i := range f.Storages {
		if f.Storages[i].Output {
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
			f.liveInto(i, in, row)
			for w, bits := range in {
				if row(i)[w] != bits {
					row(i)[w], changed = bits, true
				}
			}
		}
	}
	f.hulls(words, row)
	return true
}

func (f *Flow) liveInto(i int, in []uint64, row func(int) []uint64) {
	s := &f.Steps[i]
	copy(in, row(i+1))
	if s.Instruction.Kind == pte.JumpFalseCall {
		for w, bits := range row(s.Target) {
			in[w] |= bits
		}
	}
	for _, v := range s.Writes {
		st := f.Of[v]
		in[st/64] &^= 1 << (st % 64)
	}
	for _, list := range [...][]int{s.Reads, s.Updates} {
		for _, v := range list {
			st := f.Of[v]
			in[st/64] |= 1 << (st % 64)
		}
	}
}

// hulls takes for each storage the smallest interval of steps that holds all at
// which it is live or touched.
func (f *Flow) hulls(words int, row func(int) []uint64) {
	extend := func(st, i int) {
		s := &f.Storages[st]
		s.First, s.Last = min(s.First, i), max(s.Last, i)
	}
	for i := range f.Steps {
		for w := range words {
			for b := row(i)[w]; b != 0; b &= b - 1 {
				st := w*64 + bits.TrailingZeros64(b)
				extend(st, i)
				if i == 0 {
					extend(st, -1)
				}
			}
		}
		for _, list := range [...][]int{f.Steps[i].Reads, f.Steps[i].Writes, f.Steps[i].Updates} {
			for _, v := range list {
				extend(f.Of[v], i)
			}
		}
	}
	f.endHulls(words, row)
}

func (f *Flow) endHulls(words int, row func(int) []uint64) {
	n := len(f.Steps)
	for w := range words {
		for b := row(n)[w]; b != 0; b &= b - 1 {
			s := &f.Storages[w*64+bits.TrailingZeros64(b)]
			s.First, s.Last = min(s.First, n), n
		}
	}
}
