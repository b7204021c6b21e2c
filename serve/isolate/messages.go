package isolate

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/sandbox"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/trace"
)

// table lists the messages of one direction. The index is the kind.
type table []reflect.Type

func tableOf(list ...message) (t table) {
	for _, m := range list {
		t = append(t, reflect.TypeOf(m).Elem())
	}
	return t
}

func (t table) kindOf(m message) byte { return byte(slices.Index(t, reflect.TypeOf(m).Elem())) }

// make returns an empty message of a kind, or nil.
func (t table) make(kind byte) message {
	if int(kind) >= len(t) {
		return nil
	}
	return reflect.New(t[kind]).Interface().(message)
}

// toWorker are the messages to the process, fromWorker those from it.
var (
	toWorker   = tableOf(&attach{}, &run{}, &begin{}, &reset{}, &drop{}, &cancel{})
	fromWorker = tableOf(&hello{}, &reply{}, &event{})
)

// attach describes the layout of the shared memory: each lane has In bytes for inputs, followed by
// Out for outputs.
type attach struct{ Lanes, In, Out uint64 }

func (m *attach) code(c *coder) {
	c.number(&m.Lanes)
	c.number(&m.In)
	c.number(&m.Out)
}

// run requests a run of a method on any instance or, if Instance is not 0, on that one.
type run struct {
	ID, Method, Instance, Lane uint64
	Timeout                    int64 // nanoseconds, 0 for none
	Inputs                     []value
	Outputs                    []int
	Rows                       bool // of several requests
}

func (m *run) code(c *coder) {
	for _, x := range []*uint64{&m.ID, &m.Method, &m.Instance, &m.Lane} {
		c.number(x)
	}
	c.signed(&m.Timeout)
	list(c, &m.Inputs, maxList, func(v *value) { v.code(c) })
	list(c, &m.Outputs, maxList, func(i *int) { small(c, i, maxList) })
	c.flag(&m.Rows)
}

// begin requests a new instance. It shares the state of another one unless Sharing is 0.
type begin struct{ ID, Method, Instance, Sharing uint64 }

func (m *begin) code(c *coder) {
	for _, x := range []*uint64{&m.ID, &m.Method, &m.Instance, &m.Sharing} {
		c.number(x)
	}
}

// reset requests the initial state of an instance; drop ends it, without an answer.
type (
	reset struct{ ID, Instance uint64 }
	drop  struct{ Instance uint64 }
)

func (m *reset) code(c *coder) {
	c.number(&m.ID)
	c.number(&m.Instance)
}

func (m *drop) code(c *coder) { c.number(&m.Instance) }

// cancel reports that no caller waits for a call any longer.
type cancel struct{ ID uint64 }

func (m *cancel) code(c *coder) { c.number(&m.ID) }

// hello is the first message of the process: its program is loaded, or Fault is the reason why not.
type hello struct {
	Fault   fault
	Digest  string
	Layers  []sandbox.Layer
	Methods []etrun.MethodMeta
	Events  uint64 // of the load, which follow
}

func (m *hello) code(c *coder) {
	m.Fault.code(c)
	c.text(&m.Digest, maxText)
	c.number(&m.Events)
	list(c, &m.Layers, maxList, func(l *sandbox.Layer) {
		why := ""
		if l.Err != nil {
			why = clip(l.Err.Error())
		}
		c.text(&l.Name, maxText)
		c.text(&why, maxText)
		if c.reading && why != "" {
			l.Err = errors.New(why)
		}
	})
	list(c, &m.Methods, maxList, func(meta *etrun.MethodMeta) {
		c.text(&meta.Name, maxText)
		list(c, &meta.Inputs, maxList, func(v *etrun.ValueMeta) { codeMeta(c, v) })
		list(c, &meta.Outputs, maxList, func(v *etrun.ValueMeta) { codeMeta(c, v) })
	})
}

func codeMeta(c *coder, m *etrun.ValueMeta) {
	c.text(&m.Name, maxText)
	small(c, &m.Kind, uint64(tensor.KindOptionalTensorList))
	small(c, &m.Dynamism, uint64(tensor.DynamicUnbound))
	if m.Kind != tensor.KindTensor {
		v := valueOf(&m.Scalar)
		v.Kind = scalarKind(m.Kind)
		if v.code(c); c.reading && v.Kind != scalarKind(m.Kind) {
			c.bad("a scalar of another kind")
		}
		m.Scalar = v.scalar()
		m.Scalar.Kind = m.Kind
		return
	}
	codeType(c, &m.DType)
	codeSizes(c, &m.Sizes)
}

func codeType(c *coder, d *tensor.DType) {
	small(c, d, math.MaxInt8)
	if c.reading && c.err == nil && !d.Valid() {
		c.bad("a datatype")
	}
}

// maxElements is the largest number of elements of a tensor in a message.
const maxElements = min(1<<40, math.MaxInt)

// codeSizes codes sizes whose product fits.
func codeSizes(c *coder, sizes *[]int) {
	list(c, sizes, maxRank, func(n *int) { small(c, n, maxElements) })
	if n, ok := tensor.Product(*sizes); c.reading && c.err == nil && (!ok || n > maxElements) {
		c.bad("sizes of a tensor")
	}
}

// scalarKind returns the kind of a scalar, None for lists, which no request has.
func scalarKind(k tensor.Kind) tensor.Kind {
	switch k {
	case tensor.KindString, tensor.KindDouble, tensor.KindInt, tensor.KindBool:
		return k
	}
	return tensor.None
}

// value is an input or output: a tensor in a lane, or a scalar.
type value struct {
	Kind   tensor.Kind
	DType  tensor.DType
	Sizes  []int
	Offset uint64 // from the start of the lane's inputs or outputs
	Int    int64
	Double float64
	Bool   bool
	Text   string
}

func (v *value) code(c *coder) {
	small(c, &v.Kind, uint64(tensor.KindBool))
	switch v.Kind {
	case tensor.KindTensor:
		codeType(c, &v.DType)
		codeSizes(c, &v.Sizes)
		c.number(&v.Offset)
	case tensor.KindString:
		c.text(&v.Text, maxFrame)
	case tensor.KindDouble:
		c.float(&v.Double)
	case tensor.KindInt:
		c.signed(&v.Int)
	case tensor.KindBool:
		c.flag(&v.Bool)
	}
}

// valueOf returns a scalar, or a tensor without its offset.
func valueOf(v *tensor.Value) value {
	x := value{Kind: scalarKind(v.Kind), Int: v.Int, Double: v.Double, Bool: v.Bool, Text: v.Str}
	if v.Kind == tensor.KindTensor {
		x.Kind, x.DType, x.Sizes = v.Kind, v.Tensor.DType, v.Tensor.Sizes
	}
	return x
}

func (v *value) scalar() tensor.Value {
	return tensor.Value{Kind: v.Kind, Int: v.Int, Double: v.Double, Bool: v.Bool, Str: v.Text}
}

// reply answers a call.
type reply struct {
	ID     uint64
	Fault  fault
	Values []value // outputs of a run
	Bytes  int64   // of a new instance
}

func (m *reply) code(c *coder) {
	c.number(&m.ID)
	m.Fault.code(c)
	list(c, &m.Values, maxList, func(v *value) { v.code(c) })
	c.signed(&m.Bytes)
}

// fault is an error: its class and text. Class 0 is no error.
type fault struct {
	Class int
	Text  string
}

// classes are the errors that keep their identity. The first stands for all others.
var classes = []error{
	errors.New("failure in the model's process"), etrun.ErrFormat, etrun.ErrUnsupported, etrun.ErrMissing, etrun.ErrInput, etrun.ErrMemory,
	etrun.ErrExecute, etrun.ErrDevice, etrun.ErrClosed, etrun.ErrBusy, etrun.ErrPanic, context.Canceled, context.DeadlineExceeded,
}

func (f *fault) code(c *coder) {
	small(c, &f.Class, uint64(len(classes)))
	c.text(&f.Text, maxText)
}

func faultOf(err error) fault {
	if err == nil {
		return fault{}
	}
	for i, class := range classes {
		if errors.Is(err, class) {
			return fault{i + 1, clip(err.Error())}
		}
	}
	return fault{1, clip(err.Error())}
}

func (f fault) err() error {
	if f.Class == 0 {
		return nil
	}
	return &remoteError{classes[f.Class-1], f.Text}
}

// remoteError is an error from the process.
type remoteError struct {
	class error
	text  string
}

func (e *remoteError) Error() string { return e.text }

// Unwrap returns the class.
func (e *remoteError) Unwrap() error { return e.class }

// clip truncates a text to the length that a message may have.
func clip(s string) string { return s[:min(len(s), maxText)] }

// event is a trace.Event, with the fields that are counted.
type event struct {
	Kind                          trace.Kind
	Name, Method, Backend, Reason string
	Took                          time.Duration
	Bytes                         int64
}

func (m *event) code(c *coder) {
	small(c, &m.Kind, uint64(trace.Memory))
	for _, s := range []*string{&m.Name, &m.Method, &m.Backend, &m.Reason} {
		c.text(s, maxText)
	}
	took := int64(m.Took)
	c.signed(&took)
	m.Took = time.Duration(took)
	c.signed(&m.Bytes)
}
