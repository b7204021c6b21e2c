package pte_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	pt "github.com/etrun-go/etrun/runtime/pte/ptetest"
)

// checkFault checks the reason, path and message of an error.
func checkFault(t *testing.T, err error, reason error, path, msg string, size int) {
	t.Helper()
	e, ok := errors.AsType[*pte.FormatError](err)
	if !ok {
		t.Errorf("error %v, want a FormatError at %s: %s", err, path, msg)
		return
	}
	if !errors.Is(err, reason) || e.Path != path || e.Msg != msg {
		t.Errorf("\n got %v\nwant %v, %s: %s", err, reason, path, msg)
	}
	if e.Offset < 0 || e.Offset >= int64(max(size, 1)) {
		t.Errorf("offset %d, want one inside the file's %d bytes", e.Offset, size)
	}
}

func parseFault(t *testing.T, data []byte, reason error, path, msg string) {
	t.Helper()
	p, err := pte.Parse(data, pte.Limits{})
	if p != nil {
		t.Error("a program in addition to the error")
	}
	checkFault(t, err, reason, path, msg, len(data))
}

const plan = "execution_plan[0]"

// TestDescriptionFaults parses programs with one error in their description.
func TestDescriptionFaults(t *testing.T) {
	type method = pte.Method
	value := func(i int) string { return plan + ".values[" + string(rune('0'+i)) + "]" }
	instruction := func(i int) string { return plan + ".chains[0].instructions[" + string(rune('0'+i)) + "]" }
	for _, c := range []struct {
		name      string
		edit      func(m *method)
		path, msg string
	}{
		{"method without a name", func(m *method) { m.Name = "" }, plan + ".name", "empty method name"},
		{"input outside", func(m *method) { m.Inputs[1] = 17 }, plan + ".inputs[1]", "value 17, the method has 17"},
		{"output negative", func(m *method) { m.Outputs[2] = -5 }, plan + ".outputs[2]", "value -5, the method has 17"},
		{"negative arena", func(m *method) { m.Arenas[0].Size = -64 }, plan + ".non_const_buffer_sizes[1]", "size -64"},
		{"dtype", func(m *method) { m.Values[pt.Input].Tensor.DType = 18 }, value(pt.Input) + ".scalar_type", "unknown dtype 18"},
		{"dtype negative", func(m *method) { m.Values[pt.Input].Tensor.DType = -1 }, value(pt.Input) + ".scalar_type", "unknown dtype -1"},
		{"size negative", func(m *method) { m.Values[pt.Input].Tensor.Sizes[1] = -1 }, value(pt.Input) + ".sizes[1]", "size -1"},
		{"rank", func(m *method) { m.Values[pt.Input].Tensor.Sizes = make([]int, 17) }, value(pt.Input) + ".sizes", "rank 17, at most 16"},
		{"too many elements", func(m *method) {
			m.Values[pt.Given].Tensor.Sizes = []int{1 << 30, 1 << 30}
		}, plan + ".values[16].sizes", "sizes [1073741824 1073741824]: too many elements"},
		{"too many elements but for a zero", func(m *method) {
			m.Values[pt.Given].Tensor.Sizes = []int{1 << 30, 0, 1 << 30}
			m.Values[pt.Given].Tensor.DimOrder = nil
		}, plan + ".values[16].sizes", "sizes [1073741824 0 1073741824]: too many elements"},
		{"dim order too long", func(m *method) { m.Values[pt.Input].Tensor.Sizes = []int{6} }, value(pt.Input) + ".dim_order", "2 entries, the tensor has 1 sizes"},
		{"dim order twice", func(m *method) { m.Values[pt.Input].Tensor.DimOrder[0] = 1 }, value(pt.Input) + ".dim_order[1]", "duplicate dimension 1"},
		{"dim order outside", func(m *method) { m.Values[pt.Input].Tensor.DimOrder[0] = 255 }, value(pt.Input) + ".dim_order[0]", "dimension 255 of a tensor of rank 2"},
		{"dynamism", func(m *method) { m.Values[pt.Input].Tensor.Dynamism = 3 }, value(pt.Input) + ".shape_dynamism", "shape dynamism 3, want 0 to 2"},
		{"memory id 0", func(m *method) { m.Values[pt.Input].Tensor.Arena = -1 }, value(pt.Input) + ".allocation_info.memory_id", "memory id 0, want 1 to 2"},
		{"memory id outside", func(m *method) { m.Values[pt.Input].Tensor.Arena = 2 }, value(pt.Input) + ".allocation_info.memory_id", "memory id 3, want 1 to 2"},
		{"one byte beyond the arena", func(m *method) { m.Values[pt.Input].Tensor.Offset = 105 },
			value(pt.Input) + ".allocation_info.memory_offset_low", "24 bytes at memory offset 105, planned buffer 1 has 128"},
		{"memory offset that wraps", func(m *method) { m.Values[pt.Input].Tensor.Offset = -8 },
			value(pt.Input) + ".allocation_info.memory_offset_low", "24 bytes at memory offset 18446744073709551608, planned buffer 1 has 128"},
		{"upper bound beyond the arena", func(m *method) { m.Values[pt.Output].Tensor.Sizes[0] = 9 },
			value(pt.Output) + ".allocation_info.memory_offset_low", "108 bytes at memory offset 32, planned buffer 1 has 128"},
		{"constant too short", func(m *method) { m.Values[pt.Weight].Tensor.Data = []byte("of 12 bytes.") },
			value(pt.Weight) + ".data_buffer_idx", "data buffer 1, 24 bytes at offset 0 of a segment of 12"},
		{"initial state too short", func(m *method) { m.Values[pt.State].Tensor.Data = []byte("short") },
			plan + ".values[13].data_buffer_idx", "data buffer 1, 16 bytes at offset 0 of a segment of 5"},
		{"external without a name", func(m *method) { m.Values[pt.Remote].Tensor.Name = "" },
			plan + ".values[14].extra_tensor_info.fully_qualified_name", "external tensor without a name"},
		{"int list item outside", func(m *method) { m.Values[pt.Ints].Items[1] = 9999 }, value(pt.Ints) + ".items[1]", "value 9999, the method has 17"},
		{"int list item none", func(m *method) { m.Values[pt.Ints].Items[1] = -1 }, value(pt.Ints) + ".items[1]", "value -1, the method has 17"},
		{"int list of a tensor", func(m *method) { m.Values[pt.Ints].Items[1] = pt.Given }, value(pt.Ints) + ".items[1]", "value 16 of kind tensor, want int"},
		{"int list of a list", func(m *method) { m.Values[pt.Ints].Items[0] = pt.Ints }, value(pt.Ints) + ".items[0]", "value 4 of kind int list, want int"},
		{"tensor list of an int", func(m *method) { m.Values[pt.Tensors].Items[0] = pt.One }, value(pt.Tensors) + ".items[0]", "value 3 of kind int, want tensor"},
		{"tensor list of none", func(m *method) { m.Values[pt.Tensors].Items[0] = -1 }, value(pt.Tensors) + ".items[0]", "value -1, the method has 17"},
		{"optional tensor list of -7", func(m *method) { m.Values[pt.Options].Items[0] = -7 }, value(pt.Options) + ".items[0]", "value -7, the method has 17"},
		{"optional tensor list of an int", func(m *method) { m.Values[pt.Options].Items[0] = pt.One }, value(pt.Options) + ".items[0]", "value 3 of kind int, want tensor"},
		{"operator negative", func(m *method) { m.Chains[0].Instructions[0].Index = -1 }, instruction(0) + ".op_index", "operator -1 out of range [0, 2)"},
		{"operator outside", func(m *method) { m.Chains[0].Instructions[0].Index = 2 }, instruction(0) + ".op_index", "operator 2 out of range [0, 2)"},
		{"kernel argument outside", func(m *method) { m.Chains[0].Instructions[0].Args[4] = 1000 }, instruction(0) + ".args[4]", "value 1000, the method has 17"},
		{"delegate outside", func(m *method) { m.Chains[0].Instructions[1].Index = 9 }, instruction(1) + ".delegate_index", "delegate 9 out of range [0, 1)"},
		{"delegate argument outside", func(m *method) { m.Chains[0].Instructions[1].Args[1] = -1 }, instruction(1) + ".args[1]", "value -1, the method has 17"},
		{"condition outside", func(m *method) { m.Chains[0].Instructions[2].Index = 17 }, instruction(2) + ".cond_value_index", "value 17 out of range [0, 17)"},
		{"jump behind the end", func(m *method) { m.Chains[0].Instructions[2].Target = 6 },
			instruction(2) + ".destination_instruction", "jump to instruction 6, the chain has 5"},
		{"jump before the start", func(m *method) { m.Chains[0].Instructions[2].Target = -1 },
			instruction(2) + ".destination_instruction", "jump to instruction -1, the chain has 5"},
		{"move from outside", func(m *method) { m.Chains[0].Instructions[3].Index = 99 }, instruction(3) + ".move_from", "value 99 out of range [0, 17)"},
		{"move to outside", func(m *method) { m.Chains[0].Instructions[3].Target = 12345 }, instruction(3) + ".move_to", "value 12345 out of range [0, 17)"},
		{"free outside", func(m *method) { m.Chains[0].Instructions[4].Index = -2 }, instruction(4) + ".value_index", "value -2 out of range [0, 17)"},
		{"backend without an id", func(m *method) { m.Delegates[0].ID = "" }, plan + ".delegates[0].id", "empty backend id"},
		{"operator not UTF-8", func(m *method) { m.Operators[1].Name = "\x1b[2J\xff" }, plan + ".operators[1].name", `invalid UTF-8 in "\x1b[2J\xff"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pt.Sample()
			c.edit(&p.Methods[0])
			parseFault(t, pt.Write(p, pt.Layout{}), pte.ErrFormat, c.path, c.msg)
		})
	}
}

// TestFileFaults changes fields that descriptions do not contain.
func TestFileFaults(t *testing.T) {
	const tensor0 = plan + ".values[0].val"
	for _, c := range []struct {
		field     string
		to        any
		reason    error
		path, msg string
	}{
		{"execution_plan", nil, pte.ErrFormat, "execution_plan", "missing"},
		{plan + ".name", nil, pte.ErrFormat, plan + ".name", "missing"},
		{plan + ".values", nil, pte.ErrFormat, plan + ".values", "missing"},
		{plan + ".inputs", nil, pte.ErrFormat, plan + ".inputs", "missing"},
		{plan + ".outputs", nil, pte.ErrFormat, plan + ".outputs", "missing"},
		{plan + ".chains", nil, pte.ErrFormat, plan + ".chains", "missing"},
		{plan + ".non_const_buffer_sizes", nil, pte.ErrFormat, plan + ".non_const_buffer_sizes", "missing"},
		{plan + ".non_const_buffer_device[0].buffer_idx", 3, pte.ErrFormat, plan + ".non_const_buffer_device[0].buffer_idx", "planned buffer 3 out of range [0, 3)"},
		{plan + ".values[3].val_type", 0, pte.ErrFormat, plan + ".values[3].val_type", "union type 0 (NONE) with a value"},
		{plan + ".values[3].val_type", 12, pte.ErrUnsupported, plan + ".values[3].val_type", "value type 12, known are 1 to 11"},
		{plan + ".values[3].val", nil, pte.ErrFormat, plan + ".values[3].val_type", "union type 2 without a value"},
		{tensor0 + ".sizes", nil, pte.ErrFormat, plan + ".values[0].sizes", "missing"},
		{tensor0 + ".storage_offset", 5, pte.ErrUnsupported, plan + ".values[0].storage_offset", "storage offset 5, want 0"},
		{tensor0 + ".layout", 1, pte.ErrUnsupported, plan + ".values[0].layout", "layout 1, want 0 (strided)"},
		{tensor0 + ".data_buffer_idx", 2, pte.ErrFormat, plan + ".values[0].data_buffer_idx", "data buffer 2, the segment has 2"},
		{tensor0 + ".data_buffer_idx", -1, pte.ErrFormat, plan + ".values[0].data_buffer_idx", "data buffer 4294967295, the segment has 2"},
		{plan + ".values[13].val.extra_tensor_info.mutable_data_segments_idx", 1, pte.ErrFormat, plan + ".values[13].data_buffer_idx",
			"initial state in mutable data segment 1, the file has 1"},
		{plan + ".values[14].val.extra_tensor_info.location", 2, pte.ErrUnsupported, plan + ".values[14].extra_tensor_info.location",
			"tensor data location 2, known are 0 (segment) and 1 (external)"},
		{plan + ".chains[0].instructions[0].instr_args_type", 77, pte.ErrUnsupported, plan + ".chains[0].instructions[0].instr_args_type",
			"instruction type 77, known are 1 to 5"},
		{plan + ".chains[0].instructions[0].instr_args_type", 0, pte.ErrFormat, plan + ".chains[0].instructions[0].instr_args_type",
			"union type 0 (NONE) with a value"},
		{plan + ".delegates[0].processed", nil, pte.ErrFormat, plan + ".delegates[0].processed", "missing"},
		{plan + ".delegates[0].processed.location", 9, pte.ErrUnsupported, plan + ".delegates[0].processed.location",
			"data location 9, known are 0 (inline) and 1 (segment)"},
		{plan + ".delegates[0].processed.location", 0, pte.ErrFormat, plan + ".delegates[0].processed.index", "inline data 1, the file has 0"},
		{plan + ".delegates[0].processed.index", 42, pte.ErrFormat, plan + ".delegates[0].processed.index", "segment 42, the file has 5"},
		{"constant_segment.segment_index", 5, pte.ErrFormat, "constant_segment.segment_index", "segment 5, the file has 5"},
		{"constant_segment.offsets[1]", -8, pte.ErrFormat, plan + ".values[0].data_buffer_idx",
			"data buffer 1, 24 bytes at offset 18446744073709551608 of a segment of 24"},
		{"constant_segment.offsets[1]", 1, pte.ErrFormat, plan + ".values[0].data_buffer_idx", "data buffer 1, 24 bytes at offset 1 of a segment of 24"},
		{"constant_segment", nil, pte.ErrFormat, plan + ".values[0].data_buffer_idx", "constant 1, the file has 0"},
		{"named_data[1].key", "blob", pte.ErrFormat, "named_data[1].key", `duplicate key "blob"`},
		{"named_data[0].segment_index", 88, pte.ErrFormat, "named_data[0].segment_index", "segment 88, the file has 5"},
		{"segments[0].offset", 1 << 30, pte.ErrFormat, "segments[0].offset",
			"segment offset 1073741824, the file has 512 bytes from the segment base 2304"},
		{"segments[0].size", -1, pte.ErrFormat, "segments[0].size",
			"segment size 18446744073709551615 at offset 0, the file has 512 bytes from the segment base 2304"},
		{"segments", nil, pte.ErrFormat, "constant_segment.segment_index", "segment 0, the file has 0"},
	} {
		t.Run(c.field, func(t *testing.T) {
			f := pt.Describe(pt.Sample(), pt.Layout{})
			pt.Set(f.Root, c.field, c.to)
			parseFault(t, f.Bytes(), c.reason, c.path, c.msg)
		})
	}
}

func TestSecondMethod(t *testing.T) {
	p := pt.Sample()
	p.Methods = append(p.Methods, p.Methods[0])
	p.Methods[1].Name = strings.Repeat("forward ", 100)
	p.Methods = append(p.Methods, p.Methods[1])
	parseFault(t, pt.Write(p, pt.Layout{}), pte.ErrFormat, "execution_plan[2].name",
		`duplicate method "`+strings.Repeat("forward ", 7)+`forw"… (800 bytes)`)
}

func TestInlineFaults(t *testing.T) {
	p := pt.Sample()
	p.Methods[0].Values[pt.Weight].Tensor.Data = []byte("short")
	parseFault(t, pt.Write(p, pt.Layout{Inline: true}), pte.ErrFormat, plan+".values[0].data_buffer_idx", "constant 1 of 5 bytes, the tensor has 24")

	inline, segment := pt.Describe(pt.Sample(), pt.Layout{Inline: true}), pt.Describe(pt.Sample(), pt.Layout{})
	segment.Root.Fields["constant_buffer"] = inline.Root.Fields["constant_buffer"]
	parseFault(t, segment.Bytes(), pte.ErrFormat, "constant_buffer", "2 inline buffers in addition to a constant_segment of 2")
}

// TestHeaderFaults changes the header of a real file of 5352 bytes with its segments at 4736.
func TestHeaderFaults(t *testing.T) {
	u32, u64 := binary.LittleEndian.AppendUint32, binary.LittleEndian.AppendUint64
	for _, c := range []struct {
		name      string
		at        int
		put       []byte
		path, msg string
	}{
		{"length 0", 12, u32(nil, 0), "header.length", "header length 0, want at least 24"},
		{"length 23", 12, u32(nil, 23), "header.length", "header length 23, want at least 24"},
		{"program size beyond the file", 16, u64(nil, 5353), "header.program_size", "program size 5353, the file has 5352 bytes: truncated"},
		{"program size 2^64-1", 16, u64(nil, 1<<64-1), "header.program_size", "program size 18446744073709551615, the file has 5352 bytes: truncated"},
		{"program size 0", 16, u64(nil, 0), "root", "0 bytes, a FlatBuffer has at least 8"},
		{"program size before the root", 16, u64(nil, 62), "root", "offset 60 leaves the buffer of 62 bytes"},
		{"segment base beyond the file", 24, u64(nil, 1<<64-64), "header.segment_base_offset", "segment base 18446744073709551552, the file has 5352 bytes: truncated"},
		{"segment base inside the program", 24, u64(nil, 64), "header.segment_base_offset", "segment base 64, inside the FlatBuffer's 4736 bytes"},
		{"segment base 0", 24, u64(nil, 0), "header.segment_data_size", "segment data size 616 without a segment base"},
		{"segment data beyond the file", 32, u64(nil, 617), "header.segment_data_size", "segment data size 617 at 4736, the file has 5352 bytes: truncated"},
		{"segment data size 2^62", 32, u64(nil, 1<<62), "header.segment_data_size", "segment data size 4611686018427387904 at 4736, the file has 5352 bytes: truncated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := readFile(t, "conv_portable.pte")
			copy(data[c.at:], c.put)
			parseFault(t, data, pte.ErrFormat, c.path, c.msg)
		})
	}
}

// TestOldHeader has no segment data size: each segment is checked separately.
func TestOldHeader(t *testing.T) {
	data := pt.Write(pt.Sample(), pt.Layout{OldHeader: true})
	p, err := pte.Parse(data, pte.Limits{})
	if err != nil || p.Header.Length != 24 || p.Header.SegmentDataSize != 0 {
		t.Fatalf("header %+v, %v, want one of 24 bytes", p.Header, err)
	}
	cut := data[:len(data)-120] // into the named bytes
	if _, err := pte.Parse(cut, pte.Limits{}); err == nil || !strings.Contains(err.Error(), "segments[") {
		t.Errorf("cut: %v, want a fault of a segment", err)
	}
	parseFault(t, data[:28], pte.ErrFormat, "header", "file of 28 bytes, truncated in its header of at least 24")
}

func TestIdentifier(t *testing.T) {
	for _, c := range []struct {
		parse  func([]byte, pte.Limits) error
		data   string
		reason error
		msg    string
	}{
		{parsePTE, "", pte.ErrFormat, "0 bytes, too short for the file identifier of a .pte program"},
		{parsePTE, "\x10\x00\x00\x00ET1", pte.ErrFormat, "7 bytes, too short for the file identifier of a .pte program"},
		{parsePTE, "....XXXX", pte.ErrFormat, `file identifier "XXXX", want "ET12"`},
		{parsePTE, "....ET99", pte.ErrVersion, `file identifier "ET99", want "ET12": another version of the format, written by a newer exporter; export with an older ExecuTorch, or update etrun`},
		{parsePTE, "....FT01", pte.ErrFormat, `file identifier "FT01" of a .ptd data file, want "ET12" of a .pte program`},
		{parsePTE, "....BP08", pte.ErrFormat, `file identifier "BP08" of a .bpte bundled program, want "ET12" of a .pte program`},
		{parsePTD, "....ET12", pte.ErrFormat, `file identifier "ET12" of a .pte program, want "FT01" of a .ptd data file`},
		{parsePTD, "....FT02", pte.ErrVersion, `file identifier "FT02", want "FT01": another version of the format, written by a newer exporter; export with an older ExecuTorch, or update etrun`},
		{parseBPTE, "....ET12", pte.ErrFormat, `file identifier "ET12" of a .pte program, want "BP08" of a .bpte bundled program`},
		{parseBPTE, "....\xff\x00\n\"", pte.ErrFormat, `file identifier "\xff\x00\n\"", want "BP08"`},
	} {
		checkFault(t, c.parse([]byte(c.data), pte.Limits{}), c.reason, "", c.msg, len(c.data))
	}
}

func parsePTE(b []byte, l pte.Limits) error  { _, err := pte.Parse(b, l); return err }
func parsePTD(b []byte, l pte.Limits) error  { _, err := pte.ParseData(b, l); return err }
func parseBPTE(b []byte, l pte.Limits) error { _, err := pte.ParseBundle(b, l); return err }

// TestNewerVersions parses a program and a data file with newer schema versions, which must fail.
func TestNewerVersions(t *testing.T) {
	d := &pte.DataMap{Entries: map[string]pte.DataEntry{"a": {Data: make([]byte, 4)}}}
	for name, c := range map[string]struct {
		data  []byte
		parse func([]byte, pte.Limits) error
	}{
		"program":   {pt.Write(pt.Sample(), pt.Layout{}), parsePTE},
		"data file": {pt.WriteData(d), parsePTD},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := pt.Decode(c.data)
			if err != nil {
				t.Fatal(err)
			}
			pt.Set(f.Root, "version", 0)
			if err := c.parse(f.Bytes(), pte.Limits{}); err != nil {
				t.Errorf("version 0: %v", err)
			}
			pt.Set(f.Root, "version", 1)
			data := f.Bytes()
			checkFault(t, c.parse(data, pte.Limits{}), pte.ErrVersion, "version",
				"schema version 1, want at most 0: written by a newer exporter; export with an older ExecuTorch, or update etrun", len(data))
		})
	}
}

func TestLimits(t *testing.T) {
	data := pt.Write(pt.Sample(), pt.Layout{})
	for _, c := range []struct {
		limits    pte.Limits
		path, msg string
	}{
		{pte.Limits{Values: 16}, plan + ".values", "17 values, at most 16 are allowed"},
		{pte.Limits{Instructions: 4}, plan + ".chains[0].instructions", "5 instructions in the method, at most 4 are allowed"},
		{pte.Limits{ArenaBytes: 191}, plan + ".non_const_buffer_sizes[2]", "size 64, planned buffers of a method may take 191 bytes"},
		{pte.Limits{Tables: 20}, plan + ".values", "17 tables, want at most 8 more within the limit and the file's size"},
	} {
		_, err := pte.Parse(data, c.limits)
		checkFault(t, err, pte.ErrLimit, c.path, c.msg, len(data))
	}
	if _, err := pte.Parse(data, pte.Limits{Values: 17, Instructions: 5, ArenaBytes: 192}); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}

func TestDataFaults(t *testing.T) {
	d := &pte.DataMap{Entries: map[string]pte.DataEntry{
		"a": {Data: make([]byte, 24), Layout: &pte.Layout{DType: tensor.Float32, Sizes: []int{2, 3}, DimOrder: []uint8{1, 0}}},
		"b": {Data: make([]byte, 3)},
	}}
	for _, c := range []struct {
		field     string
		to        any
		path, msg string
	}{
		{"segments", nil, "segments", "missing"},
		{"named_data", nil, "named_data", "missing"},
		{"named_data[1].key", "a", "named_data[1].key", `duplicate key "a"`},
		{"named_data[1].segment_index", 2, "named_data[1].segment_index", "segment 2, the file has 2"},
		{"named_data[0].segment_index", 1, "named_data[0].segment_index", `segment of 3 bytes, the tensor "a" has 24`},
		{"named_data[0].tensor_layout.scalar_type", 99, "named_data[0].tensor_layout.scalar_type", "unknown dtype 99"},
		{"named_data[0].tensor_layout.sizes[0]", -2, "named_data[0].tensor_layout.sizes[0]", "size -2"},
		{"named_data[0].tensor_layout.dim_order", []byte{0}, "named_data[0].tensor_layout.dim_order", "1 entries, the tensor has 2 sizes"},
		{"segments[1].size", 4, "segments[1].size", "segment size 4 at offset 128, the file has 131 bytes from the segment base 256"},
	} {
		t.Run(c.field, func(t *testing.T) {
			f, err := pt.Decode(pt.WriteData(d))
			if err != nil {
				t.Fatal(err)
			}
			pt.Set(f.Root, c.field, c.to)
			data := f.Bytes()
			got, err := pte.ParseData(data, pte.Limits{})
			if got != nil {
				t.Error("a data map in addition to the error")
			}
			checkFault(t, err, pte.ErrFormat, c.path, c.msg, len(data))
		})
	}
}

// TestDataHeaderFaults changes the header of a real file of 524 bytes.
func TestDataHeaderFaults(t *testing.T) {
	u32, u64 := binary.LittleEndian.AppendUint32, binary.LittleEndian.AppendUint64
	for _, c := range []struct {
		name      string
		at, size  int
		put       []byte
		path, msg string
	}{
		{"cut", 0, 47, nil, "header", "file of 47 bytes, truncated in its header of 40"},
		{"no magic", 8, 524, []byte("eh00"), "header", `header magic "eh00", want "FH01"`},
		{"length", 12, 524, u32(nil, 39), "header.length", "header length 39, want at least 40"},
		{"FlatBuffer offset", 16, 524, u64(nil, 1<<63), "header.flatbuffer_size", "FlatBuffer of 272 bytes at 9223372036854775808, the file has 524 bytes: truncated"},
		{"FlatBuffer size", 24, 524, u64(nil, 1<<64-1), "header.flatbuffer_size", "FlatBuffer of 18446744073709551615 bytes at 48, the file has 524 bytes: truncated"},
		{"segment base", 32, 524, u64(nil, 525), "header.segment_base_offset", "segment base 525, the file has 524 bytes: truncated"},
		{"segment data size", 40, 524, u64(nil, 500), "header.segment_data_size", "segment data size 500 at 384, the file has 524 bytes: truncated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := readFile(t, "external_weights.ptd")[:c.size]
			copy(data[c.at:], c.put)
			_, err := pte.ParseData(data, pte.Limits{})
			checkFault(t, err, pte.ErrFormat, c.path, c.msg, len(data))
		})
	}
}

func TestBundleFaults(t *testing.T) {
	const test = "method_test_suites[0].test_cases[0]"
	for _, c := range []struct {
		field     string
		to        any
		reason    error
		path, msg string
	}{
		{"program", nil, pte.ErrFormat, "program", "missing"},
		{test + ".inputs[0].val_type", 5, pte.ErrUnsupported, test + ".inputs[0].val_type", "value type 5, known are 1 to 4"},
		{test + ".inputs[0].val", nil, pte.ErrFormat, test + ".inputs[0].val_type", "union type 1 without a value"},
		{test + ".inputs[0].val.data", []byte("short"), pte.ErrFormat, test + ".inputs[0].data", "5 bytes, the tensor has 40"},
		{test + ".expected_outputs[0].val.scalar_type", -1, pte.ErrFormat, test + ".expected_outputs[0].scalar_type", "unknown dtype -1"},
		{test + ".expected_outputs[0].val.sizes", nil, pte.ErrFormat, test + ".expected_outputs[0].sizes", "missing"},
	} {
		t.Run(c.field, func(t *testing.T) {
			f, err := pt.Decode(readFile(t, "bundle.bpte"))
			if err != nil {
				t.Fatal(err)
			}
			pt.Set(f.Root, c.field, c.to)
			data := f.Bytes()
			_, err = pte.ParseBundle(data, pte.Limits{})
			checkFault(t, err, c.reason, c.path, c.msg, len(data))
		})
	}
}
