package text

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Methods of programs whose prompts have other parts than text.
const (
	methodRows    = "token_embedding" // tokens to rows of numbers
	methodDecoder = "text_decoder"    // rows and positions to logits
)

// WithProcessor sets the contents of the model's preprocessor_config.json, which says how pictures are converted where the program's
// metadata do not.
func WithProcessor(config []byte) Option { return func(l *loading) { l.processor = config } }

// WithMediaLimit bounds the bytes of memory that the conversion of a picture or a sound takes; the default is 256 MiB.
func WithMediaLimit(bytes int64) Option { return func(l *loading) { l.mediaLimit = bytes } }

const defaultMediaLimit = 256 << 20

// encoders is the table of media: the method that encodes one, and what converts a file to its input.
var encoders = []struct {
	medium Medium
	method string
	open   func(in *etrun.ValueMeta, p *processor) (converter, error)
}{
	{Picture, "vision_encoder", openPictures},
	{Sound, "audio_encoder", openSounds},
}

// converter converts a file to the input of an encoder, within bytes of memory, and describes how.
type converter func(ctx context.Context, file []byte, limit int64) (in *tensor.Tensor, note string, err error)

// MediaError reports a picture or a sound that a model does not take.
type MediaError struct {
	Medium Medium
	Err    error
}

func (e *MediaError) Error() string { return fmt.Sprintf("%s: %v", e.Medium, e.Err) }

// Unwrap returns etrun.ErrInput and the cause.
func (e *MediaError) Unwrap() []error { return []error{etrun.ErrInput, e.Err} }

// media are the encoders of a model, and what they have encoded lately.
type media struct {
	width    int // numbers of a row
	limit    int64
	encoders []*mediaEncoder

	mu   sync.Mutex
	kept []keptPart // the last used is the last
}

// mediaEncoder is an encoder of one medium.
type mediaEncoder struct {
	medium  Medium
	pool    *etrun.Pool
	convert converter
	memory  int64 // bytes that the instance takes between calls; of media.mu
}

// keptPart is a part that need not be encoded again.
type keptPart struct {
	digest
	*Part
}

// Bounds on parts that are kept.
const (
	maxKeptParts = 16
	maxKeptBytes = 64 << 20
)

// openMedia returns the encoders of a program, whose decoder takes rows of width numbers.
func openMedia(ctx context.Context, p *etrun.Program, width int, l *loading) (*media, error) {
	d := &media{width: width, limit: l.mediaLimit}
	if d.limit <= 0 {
		d.limit = defaultMediaLimit
	}
	config, err := readProcessor(ctx, p, l.processor)
	if err != nil {
		return nil, err
	}
	for _, e := range encoders {
		if !slices.Contains(p.MethodNames(), e.method) {
			continue
		}
		meta, err := p.Meta(e.method)
		if err != nil {
			return nil, err
		}
		if len(meta.Inputs) != 1 || len(meta.Outputs) < 1 || meta.Inputs[0].Kind != tensor.KindTensor {
			return nil, &ConventionError{Kind: "an encoder of a " + string(e.medium), Method: e.method,
				Got: fmt.Sprintf("%d inputs and %d outputs", len(meta.Inputs), len(meta.Outputs)), Want: "one tensor, and the rows that it makes of it"}
		}
		convert, err := e.open(&meta.Inputs[0], config)
		if err != nil {
			return nil, err
		}
		pool, err := p.NewPool(e.method, 1)
		if err != nil {
			return nil, err
		}
		d.encoders = append(d.encoders, &mediaEncoder{medium: e.medium, pool: pool, convert: convert})
	}
	return d, nil
}

// list returns the media that there are encoders of.
func (d *media) list() (list []Medium) {
	if d == nil {
		return nil
	}
	for _, e := range d.encoders {
		list = append(list, e.medium)
	}
	return list
}

// EncodePart encodes a file: a PNG, JPEG, GIF or WebP picture, or a WAVE or FLAC recording. What the file claims is checked
// before memory is allocated for it. A part that was encoded lately is returned again. Calls wait for each other. Errors are *MediaError, and
// those of the encoder's method.
func (m *Model) EncodePart(ctx context.Context, medium Medium, file []byte) (*Part, error) {
	d := m.media
	i := slices.Index(d.list(), medium)
	if i < 0 {
		return nil, &MediaError{medium, fmt.Errorf("the model has no encoder of it")}
	}
	key := digestOf(medium, file)
	if p := d.find(key); p != nil {
		return p, nil
	}
	e := d.encoders[i]
	in, note, err := e.convert(ctx, file, d.limit)
	if err != nil {
		return nil, mediaError(ctx, medium, err)
	}
	p := &Part{medium: medium, note: note, width: d.width}
	err = e.pool.Do(ctx, func(method *etrun.Method) error {
		if err := p.encode(ctx, method, in); err != nil {
			return err
		}
		err := method.Shrink()
		d.mu.Lock()
		defer d.mu.Unlock()
		use := method.Memory()
		e.memory = use.Planned + use.Scratch
		return err
	})
	if err != nil {
		return nil, err
	}
	p.ids = key.ids(len(p.rows) / p.width)
	d.keep(key, p)
	return p, nil
}

// mediaError names the medium, but not of a context that has ended.
func mediaError(ctx context.Context, medium Medium, err error) error {
	if isCanceled(ctx, err) {
		return err
	}
	return &MediaError{medium, err}
}

// encode runs the encoder.
func (p *Part) encode(ctx context.Context, method *etrun.Method, in *tensor.Tensor) error {
	if err := method.SetInput(0, in); err != nil {
		return err
	}
	if err := method.Execute(ctx); err != nil {
		return err
	}
	v, err := method.Output(0)
	if err != nil {
		return err
	}
	t := v.Tensor
	bad := v.Kind != tensor.KindTensor || t.Rank() < 2 || t.Numel() == 0 || t.Sizes[t.Rank()-1] != p.width || !t.IsContiguous()
	if bad || !t.DType.IsFloat() || t.DType == tensor.Float64 {
		return &ConventionError{Kind: "an encoder of a " + string(p.medium), Method: method.Name(), Got: fmt.Sprintf("output 0: %v", v),
			Want: fmt.Sprintf("rows of %d numbers, as the decoder takes them", p.width)}
	}
	p.rows = slices.Clone(float32s(t, nil)) // a copy: the memory is the method's
	return nil
}

// find returns a part that is kept, nil if it is not.
func (d *media) find(key digest) *Part {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.kept, func(k keptPart) bool { return k.digest == key })
	if i < 0 {
		return nil
	}
	k := d.kept[i]
	d.kept = append(slices.Delete(d.kept, i, i+1), k)
	return k.Part
}

// keep keeps a part, and drops those that were not used for longest.
func (d *media) keep(key digest, p *Part) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = append(d.kept, keptPart{key, p})
	for len(d.kept) > maxKeptParts || d.keptBytes() > maxKeptBytes {
		d.kept = slices.Delete(d.kept, 0, 1)
	}
}

// keptBytes returns the memory of the parts that are kept. The caller holds mu.
func (d *media) keptBytes() (n int64) {
	for _, k := range d.kept {
		n += k.bytes()
	}
	return n
}

// bytes returns the memory of the encoders and of the parts that are kept.
func (d *media) bytes() (n int64) {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.encoders {
		n += e.memory
	}
	return n + d.keptBytes()
}

// shrink drops the parts that are kept.
func (d *media) shrink() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept = nil
}

// close frees the encoders.
func (d *media) close() error {
	if d == nil {
		return nil
	}
	var errs []error
	for _, e := range d.encoders {
		errs = append(errs, e.pool.Close())
	}
	return errors.Join(errs...)
}

// processor has the numbers that say how files are converted: those of the program's metadata methods, or else of preprocessor_config.json.
type processor struct{ numbers map[string][]float64 }

// processed are the names of these numbers.
var processed = []string{"image_mean", "image_std", "rescale_factor", "do_rescale", "do_normalize", "do_center_crop", "resample", "size", "crop_size",
	"feature_size", "hop_length", "n_fft", "sampling_rate"}

func readProcessor(ctx context.Context, p *etrun.Program, config []byte) (*processor, error) {
	c := &processor{make(map[string][]float64)}
	members := make(map[string]any)
	if config != nil {
		if err := json.Unmarshal(config, &members); err != nil {
			return nil, fmt.Errorf("%w: preprocessor_config.json: %w", etrun.ErrInput, jsonerror.Plain(err))
		}
	}
	for _, name := range processed {
		list, err := metaNumbers(ctx, p, name)
		if err != nil {
			return nil, err
		}
		if list == nil {
			list = numbersIn(members[name])
		}
		if list != nil {
			c.numbers[name] = list
		}
	}
	return c, nil
}

// numbersIn returns the numbers of a JSON value: of an object those of a size.
func numbersIn(v any) (list []float64) {
	switch v := v.(type) {
	case float64:
		return []float64{v}
	case bool:
		if v {
			return []float64{1}
		}
		return []float64{0}
	case []any:
		for _, x := range v {
			list = append(list, numbersIn(x)...)
		}
	case map[string]any:
		for _, key := range []string{"height", "width", "shortest_edge"} {
			list = append(list, numbersIn(v[key])...)
		}
	}
	return list
}

// one returns a number, or another one if there is none.
func (c *processor) one(name string, otherwise float64) float64 {
	if list := c.numbers[name]; len(list) > 0 {
		return list[0]
	}
	return otherwise
}
