package modules

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/runtime/pte"
)

// ErrRecord is matched by every *RecordError.
var ErrRecord = errors.New("unusable ETRecord")

// RecordError reports why an ETRecord cannot be used.
type RecordError struct {
	Path string
	Part string // the part of the record, empty for the file itself
	Err  error
}

func (e *RecordError) Error() string {
	if e.Part != "" {
		return fmt.Sprintf("%s: %v: part %q: %v", e.Path, ErrRecord, e.Part, e.Err)
	}
	return fmt.Sprintf("%s: %v: %v", e.Path, ErrRecord, e.Err)
}

// Unwrap returns ErrRecord and the cause.
func (e *RecordError) Unwrap() []error { return []error{ErrRecord, e.Err} }

// Parts of an ETRecord, a zip archive. Weights, example inputs and the exported programs of other
// dialects are not read.
const (
	versionPart = "ETRECORD_V0"
	handlesPart = "debug_handle_map"
	edgePart    = "edge_dialect_exported_program"
)

// Record has the debug handles of a program's instructions, and the modules of these handles.
type Record struct {
	path    string
	handle  map[string]map[int]handles // debug handles by method and instruction
	modules map[string]map[int]string  // names by method and debug handle

	// Damaged are the parts that differ from their checksum.
	Damaged []string
}

// handles are debug handles: a number, or a list for a delegate's call.
type handles []int

// UnmarshalJSON accepts a number or a list.
func (h *handles) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, (*[]int)(h))
	}
	*h = make(handles, 1)
	return json.Unmarshal(text, &(*h)[0])
}

// Open reads an ETRecord. Parts that it reads may have limit bytes each.
func Open(ctx context.Context, path string, limit int64) (*Record, error) {
	f, err := openfile.Open(ctx, path, openfile.Rules{})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &Record{path: path, modules: make(map[string]map[int]string)}
	z, err := zip.NewReader(f, f.Info().Size())
	if err != nil {
		return nil, r.fault("", fmt.Errorf("no zip archive: %w", err))
	}
	return r, r.read(ctx, z, limit)
}

func (r *Record) fault(part string, err error) error { return &RecordError{r.path, part, err} }

// read reads the parts that have names.
func (r *Record) read(ctx context.Context, z *zip.Reader, limit int64) error {
	if part(z, versionPart) == nil {
		return r.fault("", fmt.Errorf("no part %q, which ExecuTorch's generate_etrecord writes", versionPart))
	}
	if part(z, handlesPart) == nil {
		return r.fault("", fmt.Errorf("no part %q, want a record to which the ExecuTorch program was added", handlesPart))
	}
	if err := r.parse(part(z, handlesPart), limit, &r.handle); err != nil {
		return err
	}
	for method := range r.handle {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := r.readEdge(z, method, limit); err != nil {
			return err
		}
	}
	return nil
}

func part(z *zip.Reader, name string) *zip.File {
	i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return z.File[i]
}

// readEdge reads the modules of a method from its program in the edge dialect.
func (r *Record) readEdge(z *zip.Reader, method string, limit int64) error {
	f := part(z, edgePart+"/"+method)
	if f == nil {
		return r.fault("", fmt.Errorf("no part %q", edgePart+"/"+method))
	}
	var program struct {
		Module struct {
			Graph edgeGraph `json:"graph"`
		} `json:"graph_module"`
	}
	if err := r.parse(f, limit, &program); err != nil {
		return err
	}
	r.modules[method] = make(map[int]string)
	program.Module.Graph.names(r.modules[method])
	return nil
}

// parse decodes a part. Bytes that differ from their checksum are used, since names only inform.
func (r *Record) parse(f *zip.File, limit int64, to any) error {
	text, err := content(f, limit)
	if errors.Is(err, zip.ErrChecksum) {
		r.Damaged, err = append(r.Damaged, f.Name), nil
	}
	if err == nil {
		err = jsonerror.Plain(json.Unmarshal(text, to))
	}
	if err != nil {
		return r.fault(f.Name, err)
	}
	return nil
}

// content returns the bytes of a part, also with zip.ErrChecksum.
func content(f *zip.File, limit int64) ([]byte, error) {
	if f.UncompressedSize64 > uint64(limit) {
		return nil, fmt.Errorf("%d bytes, at most %d are read: raise --max-memory", f.UncompressedSize64, limit)
	}
	open, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer open.Close()
	return io.ReadAll(io.LimitReader(open, limit))
}

// edgeGraph is the part of a serialized graph that has names.
type edgeGraph struct {
	Nodes []struct {
		Inputs []struct {
			Arg struct {
				Graph *struct {
					Graph edgeGraph `json:"graph"`
				} `json:"as_graph"`
			} `json:"arg"`
		} `json:"inputs"`
		Metadata struct {
			Handle  json.RawMessage `json:"debug_handle"` // a number, or its digits as text
			Modules string          `json:"nn_module_stack"`
		} `json:"metadata"`
	} `json:"nodes"`
}

// names adds the modules of a graph and of those in its nodes. Of several nodes with one handle the first counts.
func (g *edgeGraph) names(to map[int]string) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if handle, err := strconv.Atoi(strings.Trim(string(n.Metadata.Handle), `"`)); err == nil && to[handle] == "" {
			to[handle] = module(n.Metadata.Modules)
		}
		for k := range n.Inputs {
			if inner := n.Inputs[k].Arg.Graph; inner != nil {
				inner.Graph.names(to)
			}
		}
	}
}

// module names the innermost module of a stack "KEY,PATH,CLASS;…": "layers.0 (Conv2d)", or the class of the model itself.
func module(stack string) string {
	last := stack[strings.LastIndexByte(stack, ';')+1:]
	_, last, _ = strings.Cut(last, ",")
	at := strings.LastIndexByte(last, ',')
	if at < 0 {
		return ""
	}
	path, class := last[:at], last[at+1:]
	class = class[strings.LastIndexByte(class, '.')+1:]
	if path == "" {
		return class
	}
	return fmt.Sprintf("%s (%s)", path, class)
}

// fits checks that the instructions of a record exist.
func (r *Record) fits(chains map[string][]pte.Chain) error {
	for method, list := range r.handle {
		own := chains[method]
		if len(own) == 0 {
			return r.fault(handlesPart, fmt.Errorf("of another program: it has a method %.100q, which the program has not", method))
		}
		for index := range list {
			if n := len(own[0].Instructions); index < 0 || index >= n {
				return r.fault(handlesPart, fmt.Errorf("of another program: method %.100q has %d instructions, the record has instruction %d",
					method, n, index))
			}
		}
	}
	return nil
}

// instruction names an instruction of a method's first chain, empty without a name.
func (r *Record) instruction(method string, index int) string {
	if r == nil {
		return ""
	}
	return r.handles(method, r.handle[method][index])
}

// handles names debug handles: the module that they share, else the first and the last one.
func (r *Record) handles(method string, list []int) string {
	if r == nil {
		return ""
	}
	var names []string
	for _, h := range list {
		if name := r.modules[method][h]; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return names[0] + " … " + names[len(names)-1]
}
