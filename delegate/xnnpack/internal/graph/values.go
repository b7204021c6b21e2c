package graph

import (
	"fmt"
	"math"
	"strconv"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// Tags of the unions.
const (
	tensorValue    = 1 // XNNTensorValue
	quantizedValue = 2 // XNNQuantizedTensorValue

	perChannelQuant = 1
	perTensorQuant  = 2
	perTokenQuant   = 3
	perGroupQuant   = 4
)

// readValue reads an XValue.
func (r *Reader) readValue(i int, t flatbuf.Table) error {
	tag, body := t.Union(0, "xvalue_union")
	fields, quant, quantTag := body, flatbuf.Table{}, uint8(0)
	if tag == quantizedValue {
		fields = body.Table(0, "tensor_value")
		quantTag, quant = body.Union(1, "quant_params")
	}
	if !t.OK() {
		return nil
	}
	if tag != tensorValue && tag != quantizedValue {
		return PayloadError(fmt.Sprintf("xvalues[%d]", i), "union type %d", tag)
	}
	v := Value{ID: fields.Uint32(6, "id_out", 0), Arg: None}
	place := "value " + itoa(v.ID)
	if old, ok := r.byID[v.ID]; ok {
		return PayloadError(place, "two values of this id, the %dth and the %dth", old, i)
	}
	if err := r.readTensor(&v, fields, place); err != nil {
		return err
	}
	if err := r.readQuant(&v, quantTag, quant, place); err != nil {
		return err
	}
	if err := r.readConstant(&v, fields, place); err != nil || !t.OK() {
		return err
	}
	r.byID[v.ID] = len(r.graph.Values)
	r.graph.Values = append(r.graph.Values, v)
	if d := fields.Int16(7, "dq_datatype", 0); d == int16(QDInt8) {
		r.addDynamicView(v)
	}
	return nil
}

// readTensor reads the fields of an XNNTensorValue, except constants.
func (r *Reader) readTensor(v *Value, t flatbuf.Table, place string) error {
	code := t.Int16(0, "datatype", 0)
	rank := t.Uint32(1, "num_dims", 0)
	dims := t.Vector(2, "dims", 4)
	external := t.Uint32(4, "external_id", 0)
	flags := t.Uint32(5, "flags", 0)
	if !t.OK() {
		return nil
	}
	v.Datatype = Datatype(code)
	if code < 0 || code > 255 || !v.Datatype.Valid() {
		return Unsupported(place, "datatype %d", code)
	}
	if int64(rank) != int64(dims.Len()) {
		return PayloadError(place, "%d sizes, num_dims says %d", dims.Len(), rank)
	}
	if dims.Len() > xnn.MaxDims {
		return Unsupported(place, "%d dimensions, at most %d", dims.Len(), xnn.MaxDims)
	}
	v.Shape.Rank = dims.Len()
	for i := range v.Shape.Rank {
		v.Shape.Dim[i] = fromUint32(dims.Uint32(i))
	}
	if v.Shape.Rank == 0 {
		v.Shape = ShapeOf(1)
	}
	if err := v.Shape.Check(); err != nil {
		return PayloadError(place, "%w", err)
	}
	if flags&^(xnn.ValueExternalInput|xnn.ValueExternalOutput) != 0 {
		return PayloadError(place, "flags %#x, only input (1) and output (2) are allowed", flags)
	}
	v.Input, v.Output = flags&xnn.ValueExternalInput != 0, flags&xnn.ValueExternalOutput != 0
	if flags != 0 {
		if external >= MaxArgs {
			return PayloadError(place, "external id %d, at most %d", external, MaxArgs-1)
		}
		v.Arg = int(external)
	}
	return nil
}

// quantKinds are the kinds of quantization by tag of union XNNQuantParams.
var quantKinds = [...]quantKind{0: Unquantized, perChannelQuant: PerChannel, perTensorQuant: PerTensor,
	perTokenQuant: PerToken, perGroupQuant: PerGroup}

// readQuant reads the quantization and checks that it matches the datatype.
func (r *Reader) readQuant(v *Value, tag uint8, t flatbuf.Table, place string) error {
	if !r.Flat.OK() {
		return nil
	}
	if int(tag) >= len(quantKinds) {
		return PayloadError(place, "quantization of type %d", tag)
	}
	got := quantKinds[tag]
	if want := v.Datatype.Info().Quant; got != want {
		return PayloadError(place, "%v elements with %v quantization, want %v", v.Datatype, got, want)
	}
	switch got {
	case PerTensor:
		return r.readPerTensor(v, t, place)
	case PerChannel:
		return r.readPerChannel(v, t, place)
	case PerToken:
		return r.readPerToken(v, t, place)
	case PerGroup:
		return r.readPerGroup(v, t, place)
	}
	return nil
}

func (r *Reader) readPerTensor(v *Value, t flatbuf.Table, place string) error {
	v.Quant.Scale, v.Quant.ZeroPoint = t.Float32(0, "scale", 0), t.Int32(1, "zero_point", 0)
	if !t.OK() {
		return nil
	}
	return v.CheckPerTensor(place)
}

// CheckPerTensor checks the scale and the zero point of a value that has one of each.
func (v *Value) CheckPerTensor(place string) error {
	d := v.Datatype.Info()
	if v.Quant.ZeroPoint < d.MinZero || v.Quant.ZeroPoint > d.MaxZero {
		return PayloadError(place, "zero point %d of %v, want %d to %d", v.Quant.ZeroPoint, v.Datatype, d.MinZero, d.MaxZero)
	}
	return CheckScale(v.Quant.Scale, place, 0)
}

func (r *Reader) readPerToken(v *Value, t flatbuf.Table, place string) error {
	v.Quant.Nonbatch = int(t.Int32(0, "num_nonbatch_dims", 0))
	if !t.OK() {
		return nil
	}
	return v.checkPerToken(place)
}

func (v *Value) checkPerToken(place string) error {
	if v.Quant.Nonbatch < 1 || v.Quant.Nonbatch > v.Shape.Rank {
		return PayloadError(place, "%d dimensions share a scale, want 1 to %d", v.Quant.Nonbatch, v.Shape.Rank)
	}
	switch {
	case v.Arg != None:
		return Unsupported(place, "dynamically quantized argument of the call")
	case v.IsConst():
		return PayloadError(place, "constant of dynamically quantized elements")
	}
	return nil
}

func (r *Reader) readPerChannel(v *Value, t flatbuf.Table, place string) error {
	v.Quant.ChannelDim = int(t.Int32(1, "channel_dim", 0))
	if !t.OK() {
		return nil
	}
	if v.Quant.ChannelDim < 0 || v.Quant.ChannelDim >= v.Shape.Rank {
		return PayloadError(place, "channel dimension %d of %d", v.Quant.ChannelDim, v.Shape.Rank)
	}
	if v.Datatype == QCInt4 {
		v.Quant.ZeroPoint = 8
	}
	channels := v.Shape.Dim[v.Quant.ChannelDim]
	var err error
	if buffer := t.Uint32(2, "scale_buffer_idx", 0); buffer != 0 {
		v.Quant.Scales, err = r.floatConstant(buffer, channels, place)
	} else {
		v.Quant.Scales = flatbuf.Slice(t.Vector(0, "scale", 4), flatbuf.Vector.Float32)
	}
	if err != nil || !t.OK() {
		return err
	}
	if n := t.Uint32(3, "num_scales", uint32(len(v.Quant.Scales))); int64(n) != int64(channels) && n != 0 || len(v.Quant.Scales) != channels {
		return PayloadError(place, "%d scales, num_scales says %d, for %d channels", len(v.Quant.Scales), n, channels)
	}
	return v.checkPerChannel(place)
}

func (v *Value) checkPerChannel(place string) error {
	if dim := v.Quant.ChannelDim; dim < 0 || dim >= v.Shape.Rank || len(v.Quant.Scales) != v.Shape.Dim[dim] {
		return PayloadError(place, "%d scales along dimension %d of sizes %v", len(v.Quant.Scales), dim, v.Shape)
	}
	for c, s := range v.Quant.Scales {
		if err := CheckScale(s, place, c); err != nil {
			return err
		}
	}
	return nil
}

// CheckScale returns an error unless s is a positive normal number.
func CheckScale(s float32, place string, channel int) error {
	if !(s >= 0x1p-126 && s <= math.MaxFloat32) {
		return PayloadError(place, "scale %v of channel %d, want a positive normal number", s, channel)
	}
	return nil
}

// inlineGroupScale is the factor by which the exporter multiplied inline group scales, to
// compensate for the truncation to bfloat16.
const inlineGroupScale = 1.00389105

func (r *Reader) readPerGroup(v *Value, t flatbuf.Table, place string) error {
	q := &v.Quant
	q.ChannelDim, q.GroupSize, q.ZeroPoint = int(t.Int32(1, "channel_dim", 0)), int(t.Int32(2, "group_size", 0)), 8
	if !t.OK() {
		return nil
	}
	want, err := v.groups(place)
	if err != nil {
		return err
	}
	if err := r.readBlocks(q, t, want, place); err != nil || !t.OK() {
		return err
	}
	if n := t.Uint32(5, "num_scales", uint32(want)); len(q.Blocks) != want || n != 0 && int64(n) != int64(want) {
		return PayloadError(place, "%d scales, num_scales says %d, for %d groups", len(q.Blocks), n, want)
	}
	cpu.Forget()
	return v.checkPerGroup(place)
}

// groups returns the number of scales of a value of 4-bit elements with scales per group.
func (v *Value) groups(place string) (int, error) {
	q := &v.Quant
	if v.Shape.Rank != 2 || q.ChannelDim != 0 {
		return 0, Unsupported(place, "%d dimensions, channel dimension %d; want 2 and 0", v.Shape.Rank, q.ChannelDim)
	}
	rows, cols := v.Shape.Dim[0], v.Shape.Dim[1]
	if q.GroupSize < 1 || cols%q.GroupSize != 0 {
		return 0, PayloadError(place, "groups of %d of %d input channels", q.GroupSize, cols)
	}
	return rows * (cols / q.GroupSize), nil
}

func (v *Value) checkPerGroup(place string) error {
	want, err := v.groups(place)
	if err != nil {
		return err
	}
	if len(v.Quant.Blocks) != want {
		return PayloadError(place, "%d scales for %d groups", len(v.Quant.Blocks), want)
	}
	const least, most = 0x0080, 0x7f7f // of the bits of positive normal numbers
	for i, s := range v.Quant.Blocks {
		if s-least > most-least {
			return CheckScale(math.Float32frombits(uint32(s)<<16), place, i)
		}
	}
	return nil
}

// readBlocks reads group scales from any of the three forms in which they are stored.
func (r *Reader) readBlocks(q *Quant, t flatbuf.Table, want int, place string) error {
	if buffer := t.Uint32(4, "scale_buffer_idx", 0); buffer != 0 {
		data, err := r.constant(buffer, want*2, place)
		if err == nil {
			q.Blocks = tensor.View[uint16](data)
		}
		return err
	}
	if q.Blocks = flatbuf.Slice(t.Vector(3, "scale_bf16", 2), flatbuf.Vector.Uint16); q.Blocks != nil {
		return nil
	}
	for _, f := range flatbuf.Slice(t.Vector(0, "scale", 4), flatbuf.Vector.Float32) {
		q.Blocks = append(q.Blocks, uint16(math.Float32bits(f*inlineGroupScale)>>16))
	}
	return nil
}

// addDynamicView adds the quantized view of the value just read. Nodes that read the value read the
// view instead (dq_datatype, an older form). The elements of the innermost dimension share a scale.
func (r *Reader) addDynamicView(v Value) {
	g := r.graph
	r.views[len(g.Values)-1] = len(g.Values)
	g.Values = append(g.Values, Value{ID: v.ID, Datatype: QDInt8, Shape: v.Shape, Arg: None, Quant: Quant{Nonbatch: 1}})
}

// ScalesOf returns the number of scales of a dynamically quantized value.
func ScalesOf(x *Value, s Shape) int { return s.Leading(s.Rank - x.Quant.Nonbatch) }
