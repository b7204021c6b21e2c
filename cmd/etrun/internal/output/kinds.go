package output

import (
	"bufio"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"strconv"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/sound"
)

// writeRaw writes little-endian elements in memory order.
func writeRaw(w io.Writer, _ *Target, v *tensor.Value) error {
	t, err := tensorOf(v)
	if err != nil {
		return err
	}
	_, err = w.Write(t.Data)
	return err
}

func writeArray(w io.Writer, _ *Target, v *tensor.Value) error {
	t, err := tensorOf(v)
	if err != nil {
		return err
	}
	return npy.Write(w, t)
}

// writeJSON writes tensors as nested lists, and other values as JSON. NaN and infinities
// become text.
func writeJSON(w io.Writer, _ *Target, v *tensor.Value) error {
	b := bufio.NewWriter(w)
	switch v.Kind {
	case tensor.None:
		b.WriteString("null")
	case tensor.KindString:
		b.WriteString(strconv.Quote(v.Str))
	default:
		t, err := tensorOf(v)
		if err != nil {
			return err
		}
		j := jsonWriter{w: b, dtype: t.DType, data: t.Logical()}
		if err := j.write(t.Sizes); err != nil {
			return err
		}
	}
	b.WriteByte('\n')
	return b.Flush()
}

// JSON returns a value as JSON: tensors as nested lists, NaN and infinities as text.
func JSON(v *tensor.Value) ([]byte, error) {
	var b bytes.Buffer
	err := writeJSON(&b, nil, v)
	return bytes.TrimSpace(b.Bytes()), err
}

// jsonWriter writes elements in sequence.
type jsonWriter struct {
	w     *bufio.Writer
	dtype tensor.DType
	data  []byte // remaining elements
}

func (j *jsonWriter) write(sizes []int) error {
	if len(sizes) == 0 {
		return j.element()
	}
	j.w.WriteByte('[')
	for i := range sizes[0] {
		if i > 0 {
			j.w.WriteByte(',')
		}
		if err := j.write(sizes[1:]); err != nil {
			return err
		}
	}
	return j.w.WriteByte(']')
}

func (j *jsonWriter) element() error {
	size := j.dtype.Size()
	one := j.data[:size]
	j.data = j.data[size:]
	switch {
	case j.dtype == tensor.Bool:
		_, err := j.w.WriteString(strconv.FormatBool(one[0] != 0))
		return err
	case j.dtype.IsInt() && tensor.Loader[int64](j.dtype) != nil:
		var v [1]int64
		tensor.Loader[int64](j.dtype)(v[:], one)
		_, err := j.w.WriteString(strconv.FormatInt(v[0], 10))
		return err
	case tensor.Loader[float64](j.dtype) == nil:
		return fmt.Errorf("elements of %v are not real numbers", j.dtype)
	}
	var v [1]float64
	tensor.Loader[float64](j.dtype)(v[:], one)
	if text, ok := number(v[0]).(string); ok {
		_, err := j.w.WriteString(strconv.Quote(text))
		return err
	}
	bits := 64
	if size < 8 {
		bits = 32
	}
	_, err := j.w.WriteString(strconv.FormatFloat(v[0], 'g', -1, bits))
	return err
}

// writePNG writes a tensor of two sides, with 1, 3 or 4 channels before or after them, as an
// image: floats in 0…1, uint8 unchanged, int8 shifted by 128.
func writePNG(w io.Writer, _ *Target, v *tensor.Value) error {
	t, err := tensorOf(v)
	if err != nil {
		return err
	}
	p, err := pictureOf(t)
	if err != nil {
		return err
	}
	values, err := floats(t)
	if err != nil {
		return err
	}
	level := func(v float64) uint8 { return uint8(min(max(math.Round(v), 0), 255)) }
	m := image.NewNRGBA(image.Rect(0, 0, p.w, p.h))
	for y := range p.h {
		for x := range p.w {
			px := [4]uint8{3: 255}
			for c := range p.channels {
				value := values[c*p.strideC+y*p.strideY+x*p.strideX]*p.scale + p.shift
				px[c] = level(value)
			}
			if p.channels == 1 {
				px[1], px[2] = px[0], px[0]
			}
			m.SetNRGBA(x, y, color.NRGBA{px[0], px[1], px[2], px[3]})
		}
	}
	return png.Encode(w, m)
}

// layout is the layout of the pixels of a tensor.
type layout struct {
	channels, h, w            int
	strideC, strideY, strideX int
	scale, shift              float64
}

func pictureOf(t *tensor.Tensor) (p layout, err error) {
	s := t.Sizes
	for len(s) > 3 && s[0] == 1 { // batch of one
		s = s[1:]
	}
	known := func(n int) bool { return n == 1 || n == 3 || n == 4 }
	switch {
	case len(s) == 2:
		p = layout{channels: 1, h: s[0], w: s[1], strideY: s[1], strideX: 1}
	case len(s) == 3 && known(s[0]):
		p = layout{channels: s[0], h: s[1], w: s[2], strideC: s[1] * s[2], strideY: s[2], strideX: 1}
	case len(s) == 3 && known(s[2]):
		p = layout{channels: s[2], h: s[0], w: s[1], strideC: 1, strideY: s[1] * s[2], strideX: s[2]}
	}
	const maxSide = 1 << 15
	if p.h < 1 || p.w < 1 || p.h > maxSide || p.w > maxSide {
		return p, fmt.Errorf("sizes %v are not an image of 1, 3 or 4 channels", t.Sizes)
	}
	switch {
	case t.DType.IsFloat():
		p.scale = 255
	case t.DType == tensor.Uint8:
		p.scale = 1
	case t.DType == tensor.Int8:
		p.scale, p.shift = 1, 128
	default:
		return p, fmt.Errorf("elements of %v, want floats, uint8 or int8 for an image", t.DType)
	}
	return p, nil
}

// writeWave writes a tensor of one channel of samples: floats in -1 … 1, or int16.
func writeWave(w io.Writer, target *Target, v *tensor.Value) error {
	t, err := tensorOf(v)
	if err != nil {
		return err
	}
	if len(squeezed(t.Sizes)) > 1 || !t.DType.IsFloat() && t.DType != tensor.Int16 {
		return fmt.Errorf("%v %v is not a recording of one channel: want floats or int16", t.DType, t.Sizes)
	}
	values, err := floats(t)
	if err != nil {
		return err
	}
	scale := 1.0
	if t.DType == tensor.Int16 {
		scale = 1 << 15
	}
	samples := make([]float32, len(values))
	for i, v := range values {
		samples[i] = float32(v / scale)
	}
	return sound.WriteWave(w, target.Rate, samples)
}
