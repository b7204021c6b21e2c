package pte

import "github.com/etrun-go/etrun/internal/flatbuf"

// instructions are the readers of instructions, by tag of union InstructionArguments.
var instructions = [...]func(*methodReader, flatbuf.Table) Instruction{
	KernelCall: func(m *methodReader, t flatbuf.Table) Instruction {
		op := ref(t, 0, "op_index", "operator", len(m.out.Operators))
		return Instruction{Kind: KernelCall, Index: op, Args: m.indexes(t, 1, "args")}
	},
	DelegateCall: func(m *methodReader, t flatbuf.Table) Instruction {
		d := ref(t, 0, "delegate_index", "delegate", len(m.out.Delegates))
		return Instruction{Kind: DelegateCall, Index: d, Args: m.indexes(t, 1, "args")}
	},
	MoveCall: func(m *methodReader, t flatbuf.Table) Instruction {
		return Instruction{Kind: MoveCall, Index: ref(t, 0, "move_from", "value", m.values), Target: ref(t, 1, "move_to", "value", m.values)}
	},
	JumpFalseCall: func(m *methodReader, t flatbuf.Table) Instruction {
		cond := ref(t, 0, "cond_value_index", "value", m.values)
		return Instruction{Kind: JumpFalseCall, Index: cond, Target: m.jumpTarget(t)}
	},
	FreeCall: func(m *methodReader, t flatbuf.Table) Instruction {
		return Instruction{Kind: FreeCall, Index: ref(t, 0, "value_index", "value", m.values)}
	},
}

// jumpTarget reads the index of an instruction, or the length of the chain for its end.
func (m *methodReader) jumpTarget(t flatbuf.Table) int {
	target := t.Int32(1, "destination_instruction", 0)
	if target < 0 || int64(target) > int64(m.length) {
		t.Failf(ErrFormat, 1, "destination_instruction", "jump to instruction %d, the chain has %d", target, m.length)
		return 0
	}
	return int(target)
}

func (m *methodReader) chain(t flatbuf.Table) Chain {
	m.length = t.Vector(2, "instructions", 4).Len()
	m.instructions += m.length
	if m.instructions > m.limits.Instructions {
		t.Failf(ErrLimit, 2, "instructions", "%d instructions in the method, at most %d are allowed", m.instructions, m.limits.Instructions)
	}
	return Chain{
		Instructions: flatbuf.List(t, 2, "instructions", m.instruction),
		Stacks:       stacks(t, m.length),
	}
}

func (m *methodReader) instruction(t flatbuf.Table) Instruction {
	tag, payload := t.Union(0, "instr_args")
	if !checkTag(t, "instr_args_type", "instruction type", tag, len(instructions)) {
		return Instruction{}
	}
	return instructions[tag](m, payload)
}

// stacks reads the stack traces of n instructions. A file may have none, or too few, which leaves
// the last instructions without.
func stacks(t flatbuf.Table, n int) [][]Frame {
	read := flatbuf.List(t, 3, "stacktrace", func(t flatbuf.Table) []Frame {
		return flatbuf.List(t, 0, "items", frame)
	})
	if len(read) == 0 {
		return nil
	}
	out := make([][]Frame, n)
	copy(out, read)
	return out
}

func frame(t flatbuf.Table) Frame {
	return Frame{
		File:    t.String(0, "filename"),
		Line:    int(t.Int32(1, "lineno", 0)),
		Name:    t.String(2, "name"),
		Context: t.String(3, "context"),
	}
}
