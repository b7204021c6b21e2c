package compiletest

import (
	"encoding/binary"
	"fmt"

	flatbuffers "github.com/google/flatbuffers/go"
)

// field is what the classes of exporters' tools in Python require of a table, unlike the runtime.
type field struct {
	id   int
	name string
	is   kind
	of   string // the table of tables, vectors of them and members
}

type kind uint8

const (
	text kind = iota
	scalars
	table
	tables
	member // of a union, whose tag is the field before it
)

// required lists the fields that are not optional there, by table. Scalars have defaults.
var required = map[string][]field{
	"Program": {{1, "execution_plan", tables, "ExecutionPlan"}, {2, "constant_buffer", tables, "Buffer"}, {3, "backend_delegate_data", tables, "Buffer"},
		{4, "segments", tables, ""}, {5, "constant_segment", table, "SubsegmentOffsets"}},
	"ExecutionPlan": {{0, "name", text, ""}, {1, "container_meta_type", table, "ContainerMetadata"}, {2, "values", tables, "EValue"},
		{3, "inputs", scalars, ""}, {4, "outputs", scalars, ""}, {5, "chains", tables, "Chain"}, {6, "operators", tables, "Operator"},
		{7, "delegates", tables, "BackendDelegate"}, {8, "non_const_buffer_sizes", scalars, ""}},
	"ContainerMetadata": {{0, "encoded_inp_str", text, ""}, {1, "encoded_out_str", text, ""}},
	"EValue":            {{1, "val", member, "values"}},
	"String":            {{0, "string_val", text, ""}},
	"List":              {{0, "items", scalars, ""}},
	"Tensor":            {{2, "sizes", scalars, ""}, {3, "dim_order", scalars, ""}},
	"Buffer":            {{0, "storage", scalars, ""}},
	"Chain":             {{0, "inputs", scalars, ""}, {1, "outputs", scalars, ""}, {2, "instructions", tables, "Instruction"}},
	"Instruction":       {{1, "instr_args", member, "instructions"}},
	"Call":              {{1, "args", scalars, ""}},
	"Operator":          {{0, "name", text, ""}, {1, "overload", text, ""}},
	"BackendDelegate":   {{0, "id", text, ""}, {1, "processed", table, ""}, {2, "compile_specs", tables, "CompileSpec"}},
	"CompileSpec":       {{0, "key", text, ""}, {1, "value", scalars, ""}},
	"SubsegmentOffsets": {{1, "offsets", scalars, ""}},
	"NamedData":         {{0, "key", text, ""}},
	"FrameList":         {{0, "items", tables, "Frame"}},
	"Frame":             {{0, "filename", text, ""}, {2, "name", text, ""}, {3, "context", text, ""}},
}

// optional lists the tables that need not be there.
var optional = map[string][]field{
	"Program": {{6, "mutable_data_segments", tables, "SubsegmentOffsets"}, {7, "named_data", tables, "NamedData"}},
	"Chain":   {{3, "stacktrace", tables, "FrameList"}},
}

// unions are their tables by tag.
var unions = map[string][]string{
	"values":       {"", "Null", "Int", "Bool", "Double", "Tensor", "String", "List", "List", "List", "List", "List"},
	"instructions": {"", "Call", "Call", "Move", "Jump", "Free"},
}

// ReadByTools returns what the tools of exporters in Python lack in a program, read by the library of FlatBuffers.
func ReadByTools(program []byte) (missing []string) {
	body := program
	if string(program[8:12]) == "eh00" {
		body = program[:binary.LittleEndian.Uint64(program[16:])]
	}
	r := &tools{found: make(map[string]bool)}
	r.table("Program", &flatbuffers.Table{Bytes: body, Pos: flatbuffers.GetUOffsetT(body)})
	for name := range r.found {
		missing = append(missing, name)
	}
	return missing
}

type tools struct{ found map[string]bool }

func (r *tools) table(name string, t *flatbuffers.Table) {
	for _, f := range required[name] {
		if !r.field(t, f) {
			r.found[fmt.Sprintf("table %s has no %s", name, f.name)] = true
		}
	}
	for _, f := range optional[name] {
		r.field(t, f)
	}
}

// slot is the place of a field in a table.
func slot(id int) flatbuffers.VOffsetT { return flatbuffers.VOffsetT(4 + 2*id) }

// field reads a field and what it refers to. It returns false if it is absent.
func (r *tools) field(t *flatbuffers.Table, f field) bool {
	at := flatbuffers.UOffsetT(t.Offset(slot(f.id)))
	if at == 0 {
		return false
	}
	switch f.is {
	case table:
		r.table(f.of, &flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at + t.Pos)})
	case tables:
		first := t.Vector(at)
		for i := range t.VectorLen(at) {
			r.table(f.of, &flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(first + flatbuffers.UOffsetT(4*i))})
		}
	case member:
		tag := t.GetByteSlot(slot(f.id-1), 0)
		if tag == 0 || int(tag) >= len(unions[f.of]) {
			return false
		}
		r.table(unions[f.of][tag], &flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(at + t.Pos)})
	case text, scalars:
		_ = t.VectorLen(at)
	}
	return true
}
