package lowering

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// dynamicLowerings lower the calls of one pattern: scale and zero point of a tensor are chosen, the
// tensor is quantized and dequantized with them, and products with 8-bit weights read the result.
// The products become nodes that quantize their input row by row, each row with its own scale, as
// in the exporter's lowering. The other calls become no nodes.
var dynamicLowerings = []lowerRow{
	{class: opclass.ChooseQParams, emit: dynamicCall, anyType: true, several: true},
	{class: opclass.QuantizeDynamic, emit: dynamicCall, anyType: true},
	{class: opclass.DequantizeDynamic, emit: dynamicCall, anyType: true},
}

// dynamicCall lowers all calls of the pattern that a call belongs to.
func dynamicCall(c *lowerCall) error {
	choose := c.index
	if c.call.Op.Class != opclass.ChooseQParams {
		choose = c.in.Writer(c.call.Args[1])
	}
	p, err := dynamicPattern(c.in, choose)
	if err != nil {
		return err
	}
	for _, i := range p.products {
		if err := c.int8Product(i, p.numbers); err != nil {
			return err
		}
	}
	for _, v := range p.numbers {
		c.dynamic[v] = p.source
	}
	return nil
}

// dynamicTensor is a tensor that is quantized at run time.
type dynamicTensor struct {
	source   int   // the tensor before quantization
	numbers  []int // its dequantized values, which products read
	products []int // the calls that read numbers
}

// dynamicPattern follows the results of a call that chooses scale and zero point. It returns an
// error if one of them is read outside the pattern.
func dynamicPattern(g *lowering.Graph, choose int) (p dynamicTensor, err error) {
	if !isCall(g, choose, opclass.ChooseQParams) {
		return p, refuse("scale and zero point do not come from choose_qparams")
	}
	args := g.Calls[choose].Args
	p.source = args[0]
	if x := &g.Values[p.source]; x.DType != tensor.Float32 || g.Values[args[1]].Int != -128 || g.Values[args[2]].Int != 127 {
		return p, refuse("quantized elements of an unsupported type or range")
	}
	chosen := g.Writes(nil, choose)
	steps, err := readersOf(g, chosen, func(i int) bool {
		return isCall(g, i, opclass.DequantizeDynamic) || isCall(g, i, opclass.QuantizeDynamic) && g.Calls[i].Args[0] == p.source
	})
	if err != nil {
		return p, err
	}
	var short []int
	for _, i := range steps {
		if !slices.Equal(g.Calls[i].Args[1:3], chosen) {
			return p, refuse("scale and zero point of several calls")
		}
		if y := g.Writes(nil, i)[0]; isCall(g, i, opclass.QuantizeDynamic) {
			short = append(short, y)
		} else {
			p.numbers = append(p.numbers, y)
		}
	}
	for _, v := range short {
		if g.Values[v].DType != tensor.Int8 {
			return p, refuse("quantized elements of an unsupported type or range")
		}
	}
	read, err := readersOf(g, short, func(i int) bool { return isCall(g, i, opclass.DequantizeDynamic) })
	if err != nil {
		return p, err
	}
	for _, i := range steps {
		if isCall(g, i, opclass.DequantizeDynamic) && !slices.Contains(read, i) {
			return p, refuse("dequantize of elements that this quantize did not produce")
		}
	}
	p.products, err = readersOf(g, p.numbers, func(i int) bool {
		return loweringOf(&g.Calls[i]) != nil && loweringOf(&g.Calls[i]).rows8
	})
	return p, err
}

// readersOf lists the calls that read the tensors of a list. It returns an error if is reports
// false for one of the calls, or if one of the tensors is an output.
func readersOf(g *lowering.Graph, list []int, is func(i int) bool) (calls []int, err error) {
	for _, v := range list {
		if slices.Contains(g.Outputs, v) {
			return nil, refuse("a result of dynamic quantization is also read elsewhere")
		}
		for _, i := range g.Readers(v) {
			if !is(i) {
				return nil, refuse("a result of dynamic quantization is also read elsewhere")
			}
			if !slices.Contains(calls, i) {
				calls = append(calls, i)
			}
		}
	}
	return calls, nil
}

// int8Product checks, by a trial lowering, that a product multiplies numbers of the pattern with
// weights that are quantized, or multiples of scales.
func (c *lowerCall) int8Product(i int, numbers []int) error {
	at := c.loweringAt(i).input
	if x := c.in.Calls[i].Args[at]; !slices.Contains(numbers, x) || len(c.vals[x].Sizes) < 2 {
		return refuse("a result of dynamic quantization is also read elsewhere")
	}
	trial, end := c.trial()
	defer end()
	for _, v := range numbers {
		trial.dynamic[v] = c.in.Calls[i].Args[at]
	}
	try := trial.newCall(i, nil)
	trial.prepare(try)
	return try.emit(try.loweringAt(i))
}

// dynamicInput returns the quantized elements of a tensor of the pattern, which is quantized once.
// It returns none for other tensors.
func (c *lowerCall) dynamicInput(v int) int {
	source, ok := c.dynamic[v]
	if !ok {
		return graph.None
	}
	if _, ok := c.rows8[source]; !ok {
		c.rows8[source] = c.converted(c.value(source, contiguous), graph.QDInt8, graph.Quant{Nonbatch: 1})
	}
	return c.rows8[source]
}
