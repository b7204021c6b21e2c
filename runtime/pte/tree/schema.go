package tree

import "strings"

// Column is a field of a table; its index in the table's list is its id.
type Column struct {
	Name string
	Type string // scalar type, "string", table or union, in brackets for a vector
}

// Tables are the schemas of the three formats. Tables of .ptd and .bpte files with the same name as
// one of program.fbs have a prefix.
var Tables = map[string][]Column{
	"Program": {
		{"version", "u32"}, {"execution_plan", "[ExecutionPlan]"}, {"constant_buffer", "[Buffer]"}, {"backend_delegate_data", "[Buffer]"},
		{"segments", "[DataSegment]"}, {"constant_segment", "SubsegmentOffsets"}, {"mutable_data_segments", "[SubsegmentOffsets]"}, {"named_data", "[NamedData]"},
	},
	"ExecutionPlan": {
		{"name", "string"}, {"container_meta_type", "ContainerMetadata"}, {"values", "[EValue]"}, {"inputs", "[i32]"}, {"outputs", "[i32]"},
		{"chains", "[Chain]"}, {"operators", "[Operator]"}, {"delegates", "[BackendDelegate]"}, {"non_const_buffer_sizes", "[i64]"},
		{"non_const_buffer_device", "[NonConstBufferDevice]"},
	},
	"NonConstBufferDevice": {{"buffer_idx", "i32"}, {"device_type", "i8"}, {"device_index", "i8"}},
	"ContainerMetadata":    {{"encoded_inp_str", "string"}, {"encoded_out_str", "string"}},
	"EValue":               {{"val_type", "u8"}, {"val", "KernelTypes"}},
	"Null":                 {},
	"Int":                  {{"int_val", "i64"}},
	"Bool":                 {{"bool_val", "bool"}},
	"Double":               {{"double_val", "f64"}},
	"String":               {{"string_val", "string"}},
	"IntList":              {{"items", "[i64]"}},
	"DoubleList":           {{"items", "[f64]"}},
	"BoolList":             {{"items", "[bool]"}},
	"TensorList":           {{"items", "[i32]"}},
	"OptionalTensorList":   {{"items", "[i32]"}},
	"Tensor": {
		{"scalar_type", "i8"}, {"storage_offset", "i32"}, {"sizes", "[i32]"}, {"dim_order", "[u8]"}, {"requires_grad", "bool"}, {"data_buffer_idx", "u32"},
		{"allocation_info", "AllocationDetails"}, {"layout", "i8"}, {"shape_dynamism", "i8"}, {"extra_tensor_info", "ExtraTensorInfo"},
	},
	"AllocationDetails": {{"memory_id", "u32"}, {"memory_offset_low", "u32"}, {"memory_offset_high", "u32"}},
	"ExtraTensorInfo": {
		{"mutable_data_segments_idx", "u64"}, {"fully_qualified_name", "string"}, {"location", "i8"}, {"device_type", "i8"}, {"device_index", "i8"},
	},
	"Buffer":                       {{"storage", "bytes16"}},
	"Chain":                        {{"inputs", "[i32]"}, {"outputs", "[i32]"}, {"instructions", "[Instruction]"}, {"stacktrace", "[FrameList]"}},
	"Instruction":                  {{"instr_args_type", "u8"}, {"instr_args", "InstructionArguments"}},
	"KernelCall":                   {{"op_index", "i32"}, {"args", "[i32]"}},
	"DelegateCall":                 {{"delegate_index", "i32"}, {"args", "[i32]"}},
	"MoveCall":                     {{"move_from", "i32"}, {"move_to", "i32"}},
	"JumpFalseCall":                {{"cond_value_index", "i32"}, {"destination_instruction", "i32"}},
	"FreeCall":                     {{"value_index", "i32"}},
	"Operator":                     {{"name", "string"}, {"overload", "string"}},
	"FrameList":                    {{"items", "[Frame]"}},
	"Frame":                        {{"filename", "string"}, {"lineno", "i32"}, {"name", "string"}, {"context", "string"}},
	"BackendDelegate":              {{"id", "string"}, {"processed", "BackendDelegateDataReference"}, {"compile_specs", "[CompileSpec]"}},
	"BackendDelegateDataReference": {{"location", "i8"}, {"index", "u32"}},
	"CompileSpec":                  {{"key", "string"}, {"value", "[u8]"}},
	"DataSegment":                  {{"offset", "u64"}, {"size", "u64"}},
	"SubsegmentOffsets":            {{"segment_index", "u32"}, {"offsets", "[u64]"}},
	"NamedData":                    {{"key", "string"}, {"segment_index", "u32"}},

	"FlatTensor":     {{"version", "u32"}, {"segments", "[DataSegment]"}, {"named_data", "[data.NamedData]"}},
	"data.NamedData": {{"key", "string"}, {"segment_index", "u32"}, {"tensor_layout", "TensorLayout"}},
	"TensorLayout":   {{"scalar_type", "i8"}, {"sizes", "[i32]"}, {"dim_order", "[u8]"}},

	"BundledProgram":         {{"version", "u32"}, {"method_test_suites", "[BundledMethodTestSuite]"}, {"program", "bytes32"}},
	"BundledMethodTestSuite": {{"method_name", "string"}, {"test_cases", "[BundledMethodTestCase]"}},
	"BundledMethodTestCase":  {{"inputs", "[bundle.Value]"}, {"expected_outputs", "[bundle.Value]"}},
	"bundle.Value":           {{"val_type", "u8"}, {"val", "bundle.ValueUnion"}},
	"bundle.Tensor":          {{"scalar_type", "i8"}, {"sizes", "[i32]"}, {"data", "bytes16"}, {"dim_order", "[u8]"}},
}

// Unions list the tables of each union by tag.
var Unions = map[string][]string{
	"KernelTypes":          {"", "Null", "Int", "Bool", "Double", "Tensor", "String", "IntList", "DoubleList", "BoolList", "TensorList", "OptionalTensorList"},
	"InstructionArguments": {"", "KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"},
	"bundle.ValueUnion":    {"", "bundle.Tensor", "Int", "Bool", "Double"},
}

// Width contains the sizes of the scalar types in bytes, 0 for other types.
var Width = map[string]int{"bool": 1, "i8": 1, "u8": 1, "i32": 4, "u32": 4, "i64": 8, "u64": 8, "f64": 8}

// ByteAlign contains the alignment of byte vectors, by type.
var ByteAlign = map[string]int{"[u8]": 1, "bytes16": 16, "bytes32": 32}

// Element returns the element type of a vector type.
func Element(typ string) (string, bool) {
	return strings.CutSuffix(strings.TrimPrefix(typ, "["), "]")
}

// UnionMember returns the table for a union's tag. A tag beyond the schema has a table without
// fields.
func UnionMember(union string, tag uint64) string {
	if members := Unions[union]; tag > 0 && tag < uint64(len(members)) {
		return members[tag]
	}
	return "Null"
}
