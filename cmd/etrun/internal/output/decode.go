package output

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/internal/lazy"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/decode"
	"github.com/etrun-go/etrun/media/picture"
)

// Decoder reads what an output means.
type Decoder struct {
	Index   int
	kind    string
	text    string
	numbers map[string]float64 // settings
}

// ErrDecode is the class of errors in a decoder's argument, and in outputs that it does not fit.
var ErrDecode = errors.New("decode")

// Scene is what decoders know of the call.
type Scene struct {
	Symbols []string       // of texts
	Labels  []string       // of boxes, printable
	Seconds float64        // from one frame to the next, 0 if unknown
	Place   *picture.Place // of the input in the call's picture, nil if it has none
}

// decoding is a row of the table of decoders: its settings with their defaults, and the function.
type decoding struct {
	settings map[string]float64
	read     func(d *Decoder, t *tensor.Tensor, values []float32, of *Scene) (any, error)
}

var decodings map[string]decoding

func init() {
	decodings = map[string]decoding{
		"ctc":   {map[string]float64{"blank": 0}, decodeCTC},
		"spans": {map[string]float64{"threshold": 0.5, "release": -1, "gap": 0, "least": 0}, decodeSpans},
		"boxes": {map[string]float64{"score": 0.25, "overlap": 0.45, "objectness": 0}, decodeBoxes},
		"map":   {map[string]float64{"threshold": 0.3, "score": 0.6, "grow": 1.5, "least": 3}, decodeMap},
	}
}

var decoderForm = lazy.Pattern(`^(?:(?:out)?([0-9]{1,9})=)?([a-z]+)(?::(.*))?$`)

// ParseDecoder parses [OUTPUT=]KIND[:KEY=NUMBER,…].
func ParseDecoder(text string) (*Decoder, error) {
	kinds := slices.Sorted(maps.Keys(decodings))
	m := decoderForm().FindStringSubmatch(text)
	if m == nil || decodings[m[2]].read == nil {
		hint := ""
		if m != nil {
			hint = nearest.Hint(m[2], kinds)
		}
		return nil, fmt.Errorf("%w %q: want [OUTPUT=]KIND, one of %s%s", ErrDecode, text, strings.Join(kinds, ", "), hint)
	}
	d := &Decoder{kind: m[2], text: text, numbers: maps.Clone(decodings[m[2]].settings)}
	d.Index, _ = strconv.Atoi(m[1])
	if m[3] == "" {
		return d, nil
	}
	for field := range strings.SplitSeq(m[3], ",") {
		key, value, _ := strings.Cut(field, "=")
		if _, ok := d.numbers[key]; !ok {
			keys := slices.Sorted(maps.Keys(d.numbers))
			return nil, fmt.Errorf("%w %q: unknown key %q, want one of %s%s", ErrDecode, text, key, strings.Join(keys, ", "), nearest.Hint(key, keys))
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !(n >= 0 && n <= 1e6) {
			return nil, fmt.Errorf("%w %q: %s: want a number from 0 to a million", ErrDecode, text, field)
		}
		d.numbers[key] = n
	}
	return d, nil
}

// Decode reads an output of a call.
func (d *Decoder) Decode(outputs []*tensor.Value, of *Scene) (any, error) {
	if d.Index >= len(outputs) {
		return nil, fmt.Errorf("%w %q: no output %d, the method has %d", ErrDecode, d.text, d.Index, len(outputs))
	}
	v := outputs[d.Index]
	if v.Kind != tensor.KindTensor || tensor.Loader[float32](v.Tensor.DType) == nil {
		return nil, d.misfit("a tensor of real numbers", v)
	}
	values := make([]float32, v.Tensor.Numel())
	tensor.Loader[float32](v.Tensor.DType)(values, v.Tensor.Logical())
	return decodings[d.kind].read(d, v.Tensor, values, of)
}

func (d *Decoder) misfit(want string, v *tensor.Value) error {
	got := v.Kind.String()
	if v.Kind == tensor.KindTensor {
		got = v.Tensor.DType.String() + " " + tensor.FormatSizes(v.Tensor.Sizes)
	}
	return fmt.Errorf("%w %q: output %d is %s, want %s", ErrDecode, d.text, d.Index, got, want)
}

func (d *Decoder) number(key string) float32 { return float32(d.numbers[key]) }

// line is a decoded text. Scores can be infinite, as the elements of outputs.
type line struct {
	Text  string `json:"text"`
	Score Number `json:"score"`
}

// score returns the number with the digits of a float32.
func score(v float32) Number {
	f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64) // of its own text
	return Number(f)
}

// Texts returns the decoded texts; ok is false for what is not text.
func Texts(found any) (list []string, ok bool) {
	lines, ok := found.([]line)
	for _, l := range lines {
		list = append(list, l.Text)
	}
	return list, ok
}

// Boxes returns decoded boxes, in pixels of the call's picture; ok is false if others were decoded.
func Boxes(found any) (list []decode.Box, ok bool) {
	boxes, ok := found.([]box)
	for _, b := range boxes {
		list = append(list, b.Box)
	}
	return list, ok
}

// HasBoxes reports whether boxes are decoded.
func (d *Decoder) HasBoxes() bool { return d.kind == "boxes" || d.kind == "map" }

// decodeCTC returns the texts of classes of frames: of rows x frames x classes, one for each row.
func decodeCTC(d *Decoder, t *tensor.Tensor, values []float32, of *Scene) (any, error) {
	v := tensor.TensorValue(t)
	if t.Rank() < 2 || len(values) == 0 {
		return nil, d.misfit("frames x classes", &v)
	}
	frames, classes, blank := t.Sizes[t.Rank()-2], t.Sizes[t.Rank()-1], int(d.numbers["blank"])
	symbols, err := d.symbols(of.Symbols, classes, blank)
	if err != nil {
		return nil, err
	}
	lines := []line{}
	for n := frames * classes; len(values) > 0; values = values[n:] {
		l := decode.Text(decode.Runs(values[:n], classes, blank), symbols)
		lines = append(lines, line{l.Text, score(l.Score)})
	}
	return lines, nil
}

// symbols returns a symbol for each class. The file may leave out the blank, and a space that is the last class.
func (d *Decoder) symbols(list []string, classes, blank int) ([]string, error) {
	if blank >= classes {
		return nil, fmt.Errorf("%w %q: blank=%d, output %d has %d classes", ErrDecode, d.text, blank, d.Index, classes)
	}
	missing := classes - len(list)
	if missing < 0 || missing > 2 {
		return nil, fmt.Errorf("%w %q: %d symbols in the file of --labels, output %d has %d classes: want a line for each, but the blank and a space at the end",
			ErrDecode, d.text, len(list), d.Index, classes)
	}
	list = slices.Clone(list)
	if missing == 2 {
		list = append(list, " ")
	}
	if missing > 0 {
		list = slices.Insert(list, min(blank, len(list)), "")
	}
	return list, nil
}

// span is a decoded span, in frames and, if the time of one is known, in seconds.
type span struct {
	From  int     `json:"from"`
	To    int     `json:"to"`
	Start float64 `json:"start,omitempty"`
	End   float64 `json:"end,omitempty"`
	Score Number  `json:"score"`
}

func decodeSpans(d *Decoder, t *tensor.Tensor, values []float32, of *Scene) (any, error) {
	if len(squeezed(t.Sizes)) > 1 {
		v := tensor.TensorValue(t)
		return nil, d.misfit("a probability for each frame; frame=N of a recording makes frames", &v)
	}
	o := decode.SpanOptions{Threshold: d.number("threshold"), Release: d.number("release"), Gap: int(d.numbers["gap"]), Least: int(d.numbers["least"])}
	if o.Release < 0 || o.Release > o.Threshold {
		o.Release = o.Threshold
	}
	list := []span{}
	for _, s := range decode.Spans(values, o) {
		list = append(list, span{s.From, s.To, float64(s.From) * of.Seconds, float64(s.To) * of.Seconds, score(s.Score)})
	}
	return list, nil
}

// box is a decoded box, with its label if there is one.
type box struct {
	decode.Box
	Score Number `json:"score"` // instead of the one in Box
	Label string `json:"label,omitempty"`
}

// boxes returns boxes in pixels of the picture, within it, with their labels. Without a picture they are in those of the input.
func (of *Scene) boxes(list []decode.Box) []box {
	out := []box{}
	for _, b := range list {
		x := box{Box: b, Score: score(b.Score)}
		if p := of.Place; p != nil {
			within := func(v float32, most int) float32 { return min(max(v, 0), float32(most)) }
			x.Left, x.Right = within((b.Left+p.Left)*p.ScaleX, p.W), within((b.Right+p.Left)*p.ScaleX, p.W)
			x.Top, x.Bottom = within((b.Top+p.Top)*p.ScaleY, p.H), within((b.Bottom+p.Top)*p.ScaleY, p.H)
		}
		if b.Class < len(of.Labels) {
			x.Label = of.Labels[b.Class]
		}
		out = append(out, x)
	}
	return out
}

// decodeBoxes reads one picture's boxes, as rows or, if there are fewer of them than columns, as columns.
func decodeBoxes(d *Decoder, t *tensor.Tensor, values []float32, of *Scene) (any, error) {
	sizes := squeezed(t.Sizes)
	if len(sizes) != 2 {
		v := tensor.TensorValue(t)
		return nil, d.misfit("boxes x (4 of the box, scores of classes) of one picture", &v)
	}
	width := sizes[1]
	if sizes[0] < sizes[1] {
		values, width = decode.Transposed(values, sizes[0], sizes[1]), sizes[0]
	}
	list, err := decode.Rows(values, width, d.numbers["objectness"] != 0, d.number("score"))
	if err != nil {
		return nil, fmt.Errorf("%w %q: output %d: %w", ErrDecode, d.text, d.Index, err)
	}
	return of.boxes(decode.Best(list, d.number("overlap"), decode.MaxBoxes)), nil
}

// decodeMap reads one picture's map of probabilities.
func decodeMap(d *Decoder, t *tensor.Tensor, values []float32, of *Scene) (any, error) {
	s := t.Sizes
	for len(s) > 2 && s[0] == 1 {
		s = s[1:]
	}
	if len(s) != 2 {
		v := tensor.TensorValue(t)
		return nil, d.misfit("a map of probabilities of one picture, height x width", &v)
	}
	o := decode.MapOptions{Threshold: d.number("threshold"), Score: d.number("score"), Grow: d.number("grow"), Least: int(d.numbers["least"])}
	list := decode.Map(values, s[1], s[0], o)
	if p := of.Place; p != nil && (p.InputW != s[1] || p.InputH != s[0]) { // the map is smaller than the input
		x, y := float32(p.InputW)/float32(s[1]), float32(p.InputH)/float32(s[0])
		for i := range list {
			b := &list[i]
			b.Left, b.Right, b.Top, b.Bottom = b.Left*x, b.Right*x, b.Top*y, b.Bottom*y
		}
	}
	return of.boxes(list[:min(len(list), decode.MaxBoxes)]), nil
}

// Print writes what was decoded as text.
func (d *Decoder) Print(w io.Writer, found any) {
	fmt.Fprintf(w, "  output %d, %s:", d.Index, d.kind)
	switch list := found.(type) {
	case []line:
		for _, l := range list {
			fmt.Fprintf(w, " %q (%s)\n", l.Text, l.Score)
		}
	case []span:
		fmt.Fprintf(w, " %d\n", len(list))
		for _, s := range list {
			if s.End > 0 {
				fmt.Fprintf(w, "    %s to %s (%s)\n", duration.FormatMS(1000*s.Start), duration.FormatMS(1000*s.End), s.Score)
			} else {
				fmt.Fprintf(w, "    frames %d to %d (%s)\n", s.From, s.To-1, s.Score)
			}
		}
	case []box:
		fmt.Fprintf(w, " %d\n", len(list))
		for _, b := range list {
			fmt.Fprintf(w, "    %.1f,%.1f to %.1f,%.1f  %s (%s)\n", b.Left, b.Top, b.Right, b.Bottom, labelOr(b.Label, b.Class), b.Score)
		}
	}
}

func labelOr(label string, class int) string {
	if label != "" {
		return label
	}
	return "class " + strconv.Itoa(class)
}
