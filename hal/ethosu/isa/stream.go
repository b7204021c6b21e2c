package isa

import "encoding/binary"

// Field is one field of a command: bits LSB to LSB+Width-1 of the command, whose
// second word, if any, are bits 32 to 63.
type Field struct {
	Name  string
	LSB   uint8
	Width uint8
	Enum  Enum // names of its values, nil for numbers
}

// Command describes a command.
type Command struct {
	Code   Code
	Name   string
	Fields []Field
}

// IsOp reports whether the command is an operation; other commands set a register.
func (c *Command) IsOp() bool { return (c.Code&^Wide < 0x100) == (c.Code&Wide == 0) }

// IsAddress reports whether the command sets a register for a 40-bit address, stride or length.
func (c *Command) IsAddress() bool { return len(c.Fields) == 1 && c.Fields[0].Width == 40 }

// address is the field of 40-bit registers: bits 39:32 are the command's bits 23:16,
// bits 31:0 its second word.
var address = []Field{{"address", 16, 40, nil}}

func param(name string, width uint8) []Field { return []Field{{name, 16, width, nil}} }

const codes = 0x200 // one more than the largest command number

// set contains commands by number, for each number of words.
type set [2][codes]*Command

func (s *set) add(commands []Command) *set {
	for i := range commands {
		c := &commands[i]
		s[c.Code>>15][c.Code&^Wide] = c
	}
	return s
}

var (
	setU65 = new(set).add(commandsAll).add(commandsU65)
	setU85 = new(set).add(commandsAll).add(commandsU85)
)

// Lookup returns the command of a family with the given code, nil if there is none.
func Lookup(f Family, c Code) *Command {
	if n := c &^ Wide; n < codes {
		if f == U85 {
			return setU85[c>>15][n]
		}
		return setU65[c>>15][n]
	}
	return nil
}

// Step is one command of a stream.
type Step struct {
	*Command
	Word    int    // index of its first word in the stream
	Param   uint16 // bits 31:16 of the first word
	Payload uint32 // the second word, 0 if there is none
}

// Address returns the 40-bit value of an address register.
func (s *Step) Address() uint64 { return uint64(s.Param&255)<<32 | uint64(s.Payload) }

// Field returns the value of a field of the command.
func (s *Step) Field(f *Field) uint64 {
	if f.Width == 40 {
		return s.Address()
	}
	return (uint64(s.Param)<<16 | uint64(s.Payload)<<32) >> f.LSB & (1<<f.Width - 1)
}

// Reader iterates over the commands of a stream.
type Reader struct {
	family Family
	stream []byte
	word   int
}

// NewReader returns a reader at the first word of a family's stream.
func NewReader(f Family, stream []byte) *Reader { return &Reader{family: f, stream: stream} }

// Next decodes the next command into s; ok is false at the end of the stream. Words that are not a
// command of the family are an *Error.
func (r *Reader) Next(s *Step) (ok bool, err error) {
	left := len(r.stream)/4 - r.word
	if left == 0 {
		return false, nil
	}
	w := binary.LittleEndian.Uint32(r.stream[4*r.word:])
	control, code := w>>14&3, Code(w&0x3ff)
	if control > 1 {
		return false, StreamError(r.word, "", ErrMalformed, "control bits %d in %#010x", control, w)
	}
	code |= Code(control) << 15
	*s = Step{Command: Lookup(r.family, code), Word: r.word, Param: uint16(w >> 16)}
	if s.Command == nil {
		return false, StreamError(r.word, "", ErrMalformed, "%v has no command %#x (cmd%d)", r.family, code&^Wide, control)
	}
	r.word++
	if control == 1 {
		if left < 2 {
			return false, StreamError(s.Word, s.Name, ErrMalformed, "missing second word")
		}
		s.Payload = binary.LittleEndian.Uint32(r.stream[4*r.word:])
		r.word++
	}
	return true, nil
}
