package main

import (
	"fmt"
	"strings"
)

// A loop is a row of the table: a function over slices, its Go expression, and the
// instructions for one block of lanes.
type loop struct {
	name    string   // of the exported function; "" where hand-written Go calls the vector loop
	lanes   string   // the vector loop; the name's if empty
	doc     string   // what follows the formula in the comment, whole sentences
	formula string   // dst[i] in the comment; expr if empty
	expr    string   // dst[i] in Go; a function name for approximations
	kind    *kind    //
	scalars []string // numbers that all elements share, of the type of the last operand
	args    []string // lists of scalars that tests call the function with
	call    string   // scalars that the exported function passes itself, in place of parameters

	amd64, arm64 code
}

// code is assembly for one instruction set, one instruction a line. For arm64 the
// instructions of words are written OP(d, n, m).
type code struct {
	setup  string // before the loop
	body   string // of one block
	finish string // behind the loop
	pair   string // of two blocks in AVX-512 registers
	// what stands before and behind the loop of pairs, where it is not one of conversions
	wideSetup, wideFinish string
	single                string // between the load of a single block and pair
	out                   int    // number of the register that body leaves its result in
	unroll                bool   // amd64: four blocks at a time
	invert                bool   // comparisons: where body's mask is not set
}

// kind is the shape of a loop: its arguments, and the text around the code.
type kind struct {
	dst      string // type of the elements, "" for none
	operands []operand
	result   string // "name type" of what the loop returns
	size     int    // bytes of an element of the byte slice, for conversions

	amd64, arm64 func(l *loop) string
	wrapper      func(l *loop) string // the exported function
	pure         func(l *loop) string // the Go implementation
}

// operand is a slice argument, and its pointer in the vector loop.
type operand struct{ name, elem string }

// field is an argument or a result of an assembly function, at an offset in its frame.
type field struct {
	name string
	off  int
}

// frame lays out the arguments of an assembly function as the Go compiler does.
type frame struct {
	fields []field
	size   int
}

// frameOf is the frame of a function by its declaration.
func frameOf(signature string) *frame {
	f := &frame{}
	_, list, _ := strings.Cut(signature, "(")
	params, result, _ := strings.Cut(list, ")")
	f.add(params)
	if result = strings.Trim(result, " ()"); result != "" {
		f.size = (f.size + 7) &^ 7
		f.add(result)
	}
	return f
}

// add lays out "a, b type, c type".
func (f *frame) add(list string) {
	var names []string
	for p := range strings.SplitSeq(list, ", ") {
		name, elem, typed := strings.Cut(p, " ")
		if names = append(names, name); !typed {
			continue
		}
		size := 8
		if elem == "float32" || elem == "int32" || elem == "uint32" {
			size = 4
		}
		for _, name := range names {
			f.size = (f.size + size - 1) &^ (size - 1)
			f.fields = append(f.fields, field{name, f.size})
			f.size += size
		}
		names = nil
	}
}

// at is an argument as name+off(FP), which go vet checks.
func (f *frame) at(name string) string {
	for _, a := range f.fields {
		if a.name == name {
			return fmt.Sprintf("%s+%d(FP)", name, a.off)
		}
	}
	panic("no argument " + name)
}

// arguments moves arguments to registers: pairs of their names.
func (f *frame) arguments(move string, pairs ...string) (text string) {
	for i := 0; i < len(pairs); i += 2 {
		text += fmt.Sprintf("%s %s, %s\n", move, f.at(pairs[i]), pairs[i+1])
	}
	return text
}

func (l *loop) frame() *frame { return frameOf(l.signature()) }

// pointers are the slices, dst first.
func (l *loop) pointers() []operand {
	if l.kind.dst == "" {
		return l.kind.operands
	}
	return append([]operand{{"dst", l.kind.dst}}, l.kind.operands...)
}

func (l *loop) scalarType() string {
	if n := len(l.kind.operands); n > 0 {
		return l.kind.operands[n-1].elem
	}
	return l.kind.dst
}

// vector is the name of the assembly function.
func (l *loop) vector() string {
	if l.lanes != "" {
		return l.lanes
	}
	return lower(l.name) + "Lanes"
}

// pureName is the name of the Go implementation.
func (l *loop) pureName() string { return lower(l.name) + "Go" }

// lower starts a name with lower case, as in ELU and elu.
func lower(name string) string {
	n := 1
	for n < len(name) && name[n] >= 'A' && name[n] <= 'Z' && (n+1 == len(name) || name[n+1] < 'a') {
		n++
	}
	return strings.ToLower(name[:n]) + name[n:]
}

// signature is the declaration of the assembly function.
func (l *loop) signature() string {
	params := []string{"n int"}
	for _, g := range grouped(l.pointers()) {
		params = append(params, strings.Join(g.names, ", ")+" *"+g.elem)
	}
	if l.scalars != nil {
		params = append(params, strings.Join(l.scalars, ", ")+" "+l.scalarType())
	}
	result := ""
	if l.kind.result != "" {
		result = " (" + l.kind.result + ")"
	}
	return fmt.Sprintf("func %s(%s)%s", l.vector(), strings.Join(params, ", "), result)
}

// group is neighbouring parameters of one type.
type group struct {
	names []string
	elem  string
}

func grouped(list []operand) (groups []group) {
	for _, o := range list {
		if n := len(groups); n > 0 && groups[n-1].elem == o.elem {
			groups[n-1].names = append(groups[n-1].names, o.name)
		} else {
			groups = append(groups, group{[]string{o.name}, o.elem})
		}
	}
	return groups
}

// lines joins texts of instructions, without empty ones.
func lines(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		for line := range strings.Lines(p) {
			if line = strings.TrimSpace(line); line != "" {
				b.WriteString(line + "\n")
			}
		}
	}
	return b.String()
}
