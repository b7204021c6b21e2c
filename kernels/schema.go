package kernels

import (
	"fmt"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Signature is a parsed schema.
type Signature struct {
	Name   string
	Args   []Arg
	Result *Arg // the returned value of an operator without outs (prim ops), else nil
	void   bool // no result: a call has no slot after its arguments
}

// Slots returns the number of argument slots of a call, including the result's.
func (s *Signature) Slots() int {
	if s.void {
		return len(s.Args)
	}
	return len(s.Args) + 1
}

// Arg is one argument of a signature.
type Arg struct {
	Name     string
	Type     string // as written, without default and annotation: "Tensor?", "int[]"
	Kinds    KindSet
	Items    KindSet // kinds of a list's items
	Out      bool    // overwritten
	Mutated  bool    // read and updated in place
	Alias    bool    // on a Result: shares the memory of the argument marked (a)
	Optional bool
}

// KindSet is a set of value kinds.
type KindSet uint16

func kinds(ks ...tensor.Kind) (s KindSet) {
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

// Has reports whether the set contains k.
func (s KindSet) Has(k tensor.Kind) bool { return s&(1<<k) != 0 }

// argTypes are the kinds of value that each schema type accepts. float accepts Int because the
// exporter writes whole numbers as Int.
var argTypes = map[string]struct{ kinds, items KindSet }{
	"Tensor":       {kinds: kinds(tensor.KindTensor)},
	"Tensor[]":     {kinds(tensor.KindTensorList), kinds(tensor.KindTensor)},
	"Tensor?[]":    {kinds(tensor.KindOptionalTensorList, tensor.KindTensorList), kinds(tensor.KindTensor, tensor.None)},
	"int":          {kinds: kinds(tensor.KindInt)},
	"SymInt":       {kinds: kinds(tensor.KindInt)},
	"float":        {kinds: kinds(tensor.KindDouble, tensor.KindInt)},
	"bool":         {kinds: kinds(tensor.KindBool)},
	"str":          {kinds: kinds(tensor.KindString)},
	"Scalar":       {kinds: kinds(tensor.KindInt, tensor.KindDouble, tensor.KindBool)},
	"ScalarType":   {kinds: kinds(tensor.KindInt)},
	"MemoryFormat": {kinds: kinds(tensor.KindInt)},
	"int[]":        {kinds(tensor.KindIntList), kinds(tensor.KindInt)},
	"SymInt[]":     {kinds(tensor.KindIntList), kinds(tensor.KindInt)},
	"float[]":      {kinds: kinds(tensor.KindDoubleList)},
	"bool[]":       {kinds: kinds(tensor.KindBoolList)},
}

// ParseSchema parses a schema in the notation of [Op.Schema].
func ParseSchema(schema string) (*Signature, error) {
	open, end := strings.IndexByte(schema, '('), strings.LastIndex(schema, ") -> ")
	if end < 0 {
		end = len(schema) - 1
	}
	if open < 0 || end < open || schema[end] != ')' {
		return nil, fmt.Errorf("schema %q: no argument list", schema)
	}
	s := &Signature{Name: schema[:open]}
	keywordOnly := false
	for field := range strings.SplitSeq(schema[open+1:end], ", ") {
		if field == "*" {
			keywordOnly = true
			continue
		}
		if field == "" {
			continue
		}
		a, err := parseArg(field)
		if err != nil {
			return nil, fmt.Errorf("schema %q: %w", schema, err)
		}
		a.Out = a.Mutated && keywordOnly
		a.Mutated = a.Mutated && !keywordOnly
		s.Args = append(s.Args, a)
	}
	if end+1 < len(schema) {
		result := schema[end+len(") -> "):]
		if s.void = result == "()"; s.void {
			return s, nil
		}
		r, err := parseArg(result + " result")
		if err != nil {
			return nil, fmt.Errorf("schema %q: %w", schema, err)
		}
		s.Result = &r
	}
	return s, nil
}

// parseArg parses "Tensor(a!) out" or "int[1]? dim=None".
func parseArg(field string) (Arg, error) {
	typ, name, ok := strings.Cut(field, " ")
	if !ok {
		return Arg{}, fmt.Errorf("argument %q has no name", field)
	}
	name, _, _ = strings.Cut(name, "=")
	a := Arg{Name: name}
	if i := strings.IndexByte(typ, '('); i >= 0 {
		j := strings.IndexByte(typ, ')')
		if j < i {
			return Arg{}, fmt.Errorf("argument %q: missing ) in annotation", field)
		}
		a.Mutated = strings.Contains(typ[i:j], "!")
		a.Alias = !a.Mutated
		typ = typ[:i] + typ[j+1:]
	}
	if i := strings.IndexByte(typ, '['); i >= 0 { // int[2] is int[]
		j := strings.IndexByte(typ, ']')
		if j < i {
			return Arg{}, fmt.Errorf("argument %q: missing ]", field)
		}
		typ = typ[:i+1] + typ[j:]
	}
	a.Type = typ
	base := typ
	if strings.HasSuffix(base, "?") {
		base, a.Optional = base[:len(base)-1], true
	}
	t, ok := argTypes[base]
	if !ok {
		return Arg{}, fmt.Errorf("argument %q: unknown type", field)
	}
	a.Kinds, a.Items = t.kinds, t.items
	if a.Optional {
		a.Kinds |= kinds(tensor.None)
	}
	return a, nil
}

// Check checks the number of slots and the kind of each. It returns an *ArgumentError for the first
// mismatch.
func (s *Signature) Check(a Args) error {
	if err := s.CheckCount(len(a)); err != nil {
		return err
	}
	for i := range s.Args {
		if err := s.checkArg(i, a[i]); err != nil {
			return err
		}
	}
	return nil
}

// CheckCount checks the number of slots of a call.
func (s *Signature) CheckCount(n int) error {
	if n == s.Slots() {
		return nil
	}
	return &ArgumentError{Op: s.Name, Arg: -1, Got: fmt.Sprintf("%d argument slots", n),
		Want: fmt.Sprintf("%d, including the result", s.Slots())}
}

func (s *Signature) checkArg(i int, v *tensor.Value) error {
	arg := &s.Args[i]
	if !arg.Kinds.Has(v.Kind) {
		return &ArgumentError{Op: s.Name, Arg: i, Name: arg.Name, Got: v.Kind.String(), Want: arg.Type}
	}
	if arg.Items == 0 || v.Kind == tensor.None {
		return nil
	}
	for _, item := range v.Items {
		if !arg.Items.Has(item.Kind) {
			return &ArgumentError{Op: s.Name, Arg: i, Name: arg.Name, Got: "a list with a " + item.Kind.String(), Want: arg.Type}
		}
	}
	return nil
}

// Args are the argument slots of a call; the result slot is last.
type Args []*tensor.Value
