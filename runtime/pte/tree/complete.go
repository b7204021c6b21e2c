package tree

// always lists the vectors and strings that exporters write even if they are empty. Runtimes take absent ones for empty ones; readers
// in Python fail.
var always = map[string][]string{
	"Program":            {"execution_plan", "constant_buffer", "backend_delegate_data", "segments"},
	"ExecutionPlan":      {"name", "values", "inputs", "outputs", "chains", "operators", "delegates", "non_const_buffer_sizes"},
	"ContainerMetadata":  {"encoded_inp_str", "encoded_out_str"},
	"String":             {"string_val"},
	"IntList":            {"items"},
	"DoubleList":         {"items"},
	"BoolList":           {"items"},
	"TensorList":         {"items"},
	"OptionalTensorList": {"items"},
	"Tensor":             {"sizes", "dim_order"},
	"Buffer":             {"storage"},
	"Chain":              {"inputs", "outputs", "instructions"},
	"KernelCall":         {"args"},
	"DelegateCall":       {"args"},
	"Operator":           {"name", "overload"},
	"FrameList":          {"items"},
	"Frame":              {"filename", "name", "context"},
	"BackendDelegate":    {"id", "compile_specs"},
	"CompileSpec":        {"key", "value"},
	"SubsegmentOffsets":  {"offsets"},
	"NamedData":          {"key"},
}

// Complete adds the empty vectors and strings to a program that exporters always write, so that their tools read it.
func (f *File) Complete() { complete(f.Root, make(map[*Node]bool)) }

func complete(n *Node, done map[*Node]bool) {
	if done[n] {
		return
	}
	done[n] = true
	for _, name := range always[n.Type] {
		if n.Fields[name] == nil {
			n.Fields[name] = empty(n.column(name).Type)
		}
	}
	for _, v := range n.Fields {
		switch v := v.(type) {
		case *Node:
			complete(v, done)
		case []*Node:
			for _, x := range v {
				complete(x, done)
			}
		}
	}
}

// empty returns the value of an empty vector or string.
func empty(typ string) any {
	elem, _ := Element(typ)
	switch {
	case typ == "string":
		return ""
	case ByteAlign[typ] > 0:
		return []byte{}
	case Width[elem] > 0:
		return []Scalar{}
	}
	return []*Node{}
}
