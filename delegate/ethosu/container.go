package ethosu

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/pack"
)

// container is a parsed payload (vela_bin_stream), which consists of blocks of a name, a size and
// data.
type container struct {
	commands []byte // the driver payload
	weights  []byte // constants, region 0
	scratch  int64  // bytes of region 1
	inputs   []record
	outputs  []record
	permuted bool // written by ExecuTorch 0.7 or earlier: the runtime converts NCHW to NHWC and back
}

// record is one input or output of the network.
type record struct {
	shape    [6]int // left padded with 1
	elemSize int
	offset   int
	region   int
}

// elements returns the number of elements, which has been checked for overflow.
func (r *record) elements() int {
	n := 1
	for _, s := range r.shape {
		n *= s
	}
	return n
}

// Block format: a name of 16 bytes, the size, a flag, and zero bytes.
const (
	blockHeader = 32
	nameBytes   = 16
	blockAlign  = 16
	keyBytes    = 64 // of an external block: SHA-256 in hexadecimal
	firstBlock  = "vela_bin_stream"
	lastBlock   = "vela_end_stream"
)

// block is one block of the payload.
type block struct {
	kind int // index in blocks
	name string
	at   int // offset of its header
	data []byte
}

func (b *block) place() string { return fmt.Sprintf("block %q at %#x", b.name, b.at) }

func malformed(place, format string, args ...any) error {
	return delegate.Errorf(ID, delegate.ErrPayload, place, format, args...)
}

// parse parses a payload. named looks up the data of external blocks and may be nil.
func parse(b []byte, named delegate.NamedData) (*container, error) {
	if len(b) < 2*blockHeader || len(b)%blockAlign != 0 {
		return nil, malformed("", "%d bytes, want a multiple of %d and at least %d", len(b), blockAlign, 2*blockHeader)
	}
	if !strings.HasPrefix(string(b), firstBlock) {
		return nil, malformed("", "first block %q, want %q", blockName(b), firstBlock)
	}
	end := b[len(b)-blockHeader:]
	if !strings.HasPrefix(string(end), lastBlock) {
		return nil, malformed("", "last block %q, want %q", blockName(end), lastBlock)
	}
	c := &container{}
	var seen [len(blocks)]bool
	for at := 0; at < len(b); {
		blk, next, err := readBlock(b, at, named)
		if err != nil {
			return nil, err
		}
		if seen[blk.kind] {
			return nil, malformed(blk.place(), "duplicate block")
		}
		seen[blk.kind] = true
		if err := blocks[blk.kind].read(c, blk); err != nil {
			return nil, err
		}
		if at = next; blk.name == lastBlock && at != len(b) {
			return nil, malformed(blk.place(), "%d bytes follow it", len(b)-at)
		}
	}
	for i := range blocks {
		if !seen[i] {
			return nil, malformed("", "no block %q", blocks[i].name)
		}
	}
	return c, c.check()
}

func blockName(b []byte) string { return strings.TrimRight(string(b[:nameBytes]), "\x00") }

// readBlock reads the block at an offset and returns the offset of the next one.
func readBlock(b []byte, at int, named delegate.NamedData) (*block, int, error) {
	blk := &block{name: blockName(b[at:]), at: at}
	if blk.kind = kindOf(blk.name); blk.kind < 0 {
		return nil, 0, malformed(blk.place(), "unknown block")
	}
	blk.name = blocks[blk.kind].name
	size := int64(binary.LittleEndian.Uint32(b[at+nameBytes:]))
	padded := pack.Align(size, blockAlign)
	next := int64(at) + blockHeader + padded
	if next > int64(len(b)) || blk.name != lastBlock && next > int64(len(b))-blockHeader {
		return nil, 0, malformed(blk.place(), "block of %d bytes, but only %d are left", size, len(b)-at-blockHeader)
	}
	blk.data = b[at+blockHeader : at+blockHeader+int(size)]
	if b[at+nameBytes+4] != 0 {
		data, err := external(blk, named)
		if err != nil {
			return nil, 0, err
		}
		blk.data = data
	}
	return blk, int(next), nil
}

// kindOf returns the kind of the block whose name is a prefix of s, -1 if there is none.
func kindOf(s string) int {
	for i := range blocks {
		if strings.HasPrefix(s, blocks[i].name) {
			return i
		}
	}
	return -1
}

// external looks up the data of a block that contains a key.
func external(b *block, named delegate.NamedData) ([]byte, error) {
	if b.name != "cmd_data" && b.name != "weight_data" {
		return nil, malformed(b.place(), "external data is allowed for cmd_data and weight_data only")
	}
	if len(b.data) != keyBytes {
		return nil, malformed(b.place(), "key of %d bytes, want %d", len(b.data), keyBytes)
	}
	if named != nil {
		if data, ok := named.Named(string(b.data)); ok {
			return data, nil
		}
	}
	return nil, delegate.Errorf(ID, delegate.ErrMissing, b.place(), "external data %q: pass the .ptd file that contains it", b.data)
}

// blocks are the block types of a payload; each must occur once.
var blocks = [...]struct {
	name string
	read func(c *container, b *block) error
}{
	{firstBlock, empty},
	{"cmd_data", func(c *container, b *block) error { c.commands = b.data; return nil }},
	{"weight_data", func(c *container, b *block) error { c.weights = b.data; return nil }},
	{"scratch_size", (*container).readScratch},
	{"inputs", func(c *container, b *block) (err error) { c.inputs, err = c.readRecords(b); return }},
	{"outputs", func(c *container, b *block) (err error) { c.outputs, err = c.readRecords(b); return }},
	{lastBlock, empty},
}

func empty(_ *container, b *block) error {
	if len(b.data) != 0 {
		return malformed(b.place(), "%d bytes, want none", len(b.data))
	}
	return nil
}

func (c *container) readScratch(b *block) error {
	if len(b.data) != 4 {
		return malformed(b.place(), "%d bytes, want 4", len(b.data))
	}
	c.scratch = int64(binary.LittleEndian.Uint32(b.data))
	return nil
}

// Record format: six sizes, element size, offset and region. ExecuTorch 0.7 and earlier wrote four
// sizes.
const (
	recordBytes    = 36
	oldRecordBytes = 28
)

func (c *container) readRecords(b *block) ([]record, error) {
	if len(b.data) < 4 {
		return nil, malformed(b.place(), "%d bytes, want at least 4", len(b.data))
	}
	count, body := int32(binary.LittleEndian.Uint32(b.data)), b.data[4:]
	if count < 0 || int64(count) > int64(len(body)) {
		return nil, malformed(b.place(), "%d records in %d bytes", count, len(body))
	}
	size := recordBytes
	if count > 0 && len(body) == int(count)*oldRecordBytes {
		size, c.permuted = oldRecordBytes, true
	}
	if len(body) != int(count)*size {
		return nil, malformed(b.place(), "%d records in %d bytes, want %d bytes each", count, len(body), recordBytes)
	}
	out := make([]record, count)
	for i := range out {
		if err := out[i].read(body[i*size : (i+1)*size]); err != nil {
			return nil, malformed(fmt.Sprintf("%s, record %d", b.place(), i), "%w", err)
		}
	}
	return out, nil
}

func (r *record) read(b []byte) error {
	dims := len(b)/4 - 3
	number := func(i int) int { return int(int32(binary.LittleEndian.Uint32(b[4*i:]))) }
	n := int64(1)
	for i := range r.shape {
		r.shape[i] = 1
		if j := i - (len(r.shape) - dims); j >= 0 {
			r.shape[i] = number(j)
		}
		if r.shape[i] <= 0 {
			return fmt.Errorf("size %d in dimension %d", r.shape[i], i)
		}
		if n *= int64(r.shape[i]); n > math.MaxInt32 {
			return fmt.Errorf("shape %v has too many elements", r.shape)
		}
	}
	r.elemSize, r.offset, r.region = number(dims), number(dims+1), number(dims+2)
	switch {
	case r.elemSize < 1 || r.elemSize > 8:
		return fmt.Errorf("elements of %d bytes", r.elemSize)
	case r.offset < 0:
		return fmt.Errorf("offset %d", r.offset)
	}
	return nil
}

// check checks that the records lie within their regions.
func (c *container) check() error {
	for _, list := range []struct {
		name    string
		records []record
		own     int // region used in direct drive
	}{{"input", c.inputs, regionInputs}, {"output", c.outputs, regionOutputs}} {
		for i := range list.records {
			r := &list.records[i]
			if r.region != regionScratch && r.region != list.own {
				return malformed(fmt.Sprintf("%s %d", list.name, i), "region %d, want %d or %d", r.region, regionScratch, list.own)
			}
			end := int64(r.offset) + int64(r.elements())*int64(r.elemSize)
			if r.region == regionScratch && end > c.scratch { // other regions are sized by their records
				return malformed(fmt.Sprintf("%s %d", list.name, i), "bytes %#x to %#x of region %d, which has %#x", r.offset, end, r.region, c.scratch)
			}
		}
	}
	return nil
}

// bytes returns the size of the tensor in the NPU's memory.
func (r *record) bytes() int { return r.elements() * r.elemSize }

// Region numbers used by the Vela compiler.
const (
	regionConstants = iota
	regionScratch
	regionFast
	regionInputs
	regionOutputs
)
