package ptetest

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Recogniser describes a program with random weights in the form of react-native-executorch's Whisper: encode(samples [n] float32) →
// [1, Frames, Dim], and decode(tokens [1, 1] int64, positions [1] int64, frames [1, Frames, Dim]) → [1, 1, Vocabulary] float32.
// The decoder projects the frames to keys and values in every call.
type Recogniser struct {
	Transformer
	Frames, Samples int
	Encoder         int // layers of the encoder, of four times the size in the middle
}

// File returns the bytes of the program.
func (c Recogniser) File() []byte {
	return Write(&pte.Program{Methods: []pte.Method{c.encode(), c.decode()}}, Layout{})
}

// encode multiplies a table of weights by the largest sample, before the layers.
func (c Recogniser) encode() pte.Method {
	w := c.writer()
	samples, top, out := w.tensor(tensor.Float32, true, c.Samples), w.tensor(tensor.Float32, false, 1), w.tensor(tensor.Float32, false, c.Frames, c.Dim)
	w.call("aten::amax.out", samples, w.value(pte.Value{Kind: tensor.KindIntList, Items: []int{w.int(0)}}), w.value(pte.Value{Kind: tensor.KindBool, Bool: true}), top)
	w.call("aten::mul.out", w.weights(1, c.Frames, c.Dim), top, out)
	w.rows, w.static = c.Frames, true
	x := w.view(out, 1, -1, c.Dim)
	for range c.Encoder {
		x = w.feed(w.feed(w.sum(x, w.attend(w.split(x), w.split(x), w.split(x), -1))))
	}
	w.end("encode", []int{samples}, x)
	return w.m
}

func (c Recogniser) decode() pte.Method {
	w := c.writer()
	w.static = true
	w.rows = c.Frames
	frames, tokens, positions := w.tensor(tensor.Float32, false, 1, c.Frames, c.Dim), w.tensor(tensor.Int64, false, 1, 1), w.tensor(tensor.Int64, false, 1)
	last := w.int(c.Frames - 1)
	w.rows = 1
	x, start := w.begin(tokens, positions)
	for range w.Layers {
		x = w.sum(x, w.attention(x, start))
		w.rows = c.Frames
		keys, values := w.split(frames), w.split(frames)
		w.rows = 1
		x = w.feed(w.sum(x, w.attend(w.split(x), keys, values, last)))
	}
	w.end("decode", []int{tokens, positions, frames}, w.logits(x))
	return w.m
}
