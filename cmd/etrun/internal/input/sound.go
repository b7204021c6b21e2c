package input

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/nearest"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/sound"
)

// SoundRecipe is the conversion of a recording to an input. The zero recipe uses the
// samples of one channel unchanged.
type SoundRecipe struct {
	Rate     int  // rate of the model; 0: not set
	Resample bool // convert to Rate if the file has another
	Mix      bool // use the mean of all channels
	Channel  int  // else this one, counted from 1; 0 if the file has only one
	Fit      bool // pad with zeros or truncate to the input's length
	Frame    int  // samples of a frame: a run for each; 0: one run with all samples
	Hop      int  // samples from one frame to the next; 0: Frame
	Pad      int  // zeros before the first frame's samples
}

// soundKeys are the options for recordings.
var soundKeys = map[string]func(*SoundRecipe, string) error{
	"rate":     func(r *SoundRecipe, text string) error { return setRate(&r.Rate, text) },
	"resample": func(r *SoundRecipe, text string) error { r.Resample = true; return setRate(&r.Rate, text) },
	"channel": func(r *SoundRecipe, text string) (err error) {
		if r.Mix = text == "mix"; r.Mix {
			return nil
		}
		if r.Channel, err = strconv.Atoi(text); err != nil || r.Channel < 1 {
			return errors.New("want a channel, counted from 1, or mix")
		}
		return nil
	},
	"length": func(r *SoundRecipe, text string) error {
		if r.Fit = text == "fit"; !r.Fit && text != "exact" {
			return errors.New("want exact or fit")
		}
		return nil
	},
	"frame": func(r *SoundRecipe, text string) error { return setCount(&r.Frame, text) },
	"hop":   func(r *SoundRecipe, text string) error { return setCount(&r.Hop, text) },
	"pad":   func(r *SoundRecipe, text string) error { return setCount(&r.Pad, text) },
}

func setCount(n *int, text string) (err error) {
	const most = 1 << 30
	if *n, err = strconv.Atoi(text); err != nil || *n < 1 || *n > most {
		return fmt.Errorf("want a number of samples, 1 to %d", most)
	}
	return nil
}

func setRate(rate *int, text string) (err error) {
	const maxRate = 768_000
	if *rate, err = strconv.Atoi(text); err != nil || *rate < 1 || *rate > maxRate {
		return fmt.Errorf("want samples per second, 1 to %d", maxRate)
	}
	return nil
}

// parseSoundRecipe reads "resample=16000,channel=mix,length=fit".
func parseSoundRecipe(text string) (r SoundRecipe, err error) {
	for field := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(field, "=")
		set := soundKeys[key]
		if set == nil {
			return r, fmt.Errorf("unknown key %q, want one of rate, resample, channel, length, frame, hop, pad%s", key,
				nearest.Hint(key, slices.Collect(maps.Keys(soundKeys))))
		}
		if err := set(&r, value); err != nil {
			return r, fmt.Errorf("%s: %w", field, err)
		}
	}
	switch {
	case r.Hop+r.Pad > 0 && r.Frame == 0:
		return r, errors.New("hop and pad are for frames: set frame=N, too")
	case r.Pad > r.Frame:
		return r, errors.New("pad is above frame")
	case r.Fit && r.Frame > 0:
		return r, errors.New("frame with length=fit: the last frame is padded with zeros")
	}
	return r, nil
}

// maxSound is the maximum size of a recording's file.
const maxSound = 1 << 30

// sound reads a recording and converts it to an input: the last size of the input is the
// number of samples, the others are 1.
func (r *Resolver) sound(index int, src source, slot etrun.ValueMeta) (*tensor.Tensor, error) {
	s := src.spec
	b, err := readAll(src.file, s.Path, min(maxSound, max(r.Limit, 1)))
	if err != nil {
		return nil, err
	}
	if 4*int64(len(b)) > r.Limit { // file, samples, and samples of one channel
		return nil, &openfile.SizeError{Path: s.Path, Size: int64(len(b)), Limit: r.Limit / 4}
	}
	from, err := sound.Parse(b, (r.Limit-int64(len(b)))/2) // the samples, and those of one channel
	if errors.Is(err, sound.ErrSize) {
		return nil, &Error{Index: -1, Reason: ErrMemory, Err: err}
	}
	if err != nil {
		return nil, err
	}
	samples, said, err := s.Sound.apply(from, r.Limit)
	if err != nil {
		return nil, err
	}
	n := len(samples)
	if s.Sound.Frame > 0 {
		n = s.Sound.Frame
	}
	sizes, err := s.Sound.sizes(n, slot)
	if err != nil {
		return nil, err
	}
	slot.Sizes = sizes
	t, err := r.allocate(slot)
	if err != nil {
		return nil, err
	}
	if err := storeSamples(t, samples, from.Integers); err != nil {
		return nil, mismatch("%w, want %s", err, want(slot))
	}
	if s.Sound.Frame > 0 {
		if r.Frames != nil {
			return nil, mismatch("a second recording in frames, want one")
		}
		r.Frames = newFrames(index, &s.Sound, samples, from)
		said += fmt.Sprintf(", %d frames of %d", r.Frames.Count(), n)
	}
	r.Say("input %d: %s: %d samples%s", index, s.Path, len(samples), said)
	return t, nil
}

// apply returns the samples of one channel at the requested rate; said describes the conversion.
func (p *SoundRecipe) apply(from *sound.Sound, limit int64) (samples []float32, said string, err error) {
	said = fmt.Sprintf(" at %d Hz", from.Rate)
	switch n := from.Channels; {
	case p.Channel > n:
		return nil, "", mismatch("channel %d, the file has %d", p.Channel, n)
	case n > 1 && p.Channel == 0 && !p.Mix:
		return nil, "", mismatch("a recording with %d channels; set :channel=1, or :channel=mix for the mean", n)
	case p.Channel > 0:
		samples = from.Channel(p.Channel - 1)
	default:
		samples = from.Mono()
	}
	if from.Channels > 1 {
		said = fmt.Sprintf("%s, of %d channels", said, from.Channels)
	}
	if p.Rate == 0 || p.Rate == from.Rate {
		return samples, said, nil
	}
	if !p.Resample {
		return nil, "", mismatch("a recording at %d Hz, want %d; convert it with :resample=%[2]d", from.Rate, p.Rate)
	}
	if after := sound.Resampled(len(samples), from.Rate, p.Rate); after > limit/4 {
		return nil, "", &Error{Index: -1, Reason: ErrMemory,
			Err: fmt.Errorf("%d samples after resampling, the remaining limit is %d bytes", after, limit)}
	}
	return sound.Resample(samples, from.Rate, p.Rate), fmt.Sprintf("%s, resampled to %d Hz", said, p.Rate), nil
}

// sizes returns the sizes of the input for n samples.
func (p *SoundRecipe) sizes(n int, slot etrun.ValueMeta) ([]int, error) {
	rank := len(slot.Sizes)
	if rank == 0 || slices.ContainsFunc(slot.Sizes[:max(rank-1, 0)], func(size int) bool { return size != 1 }) {
		return nil, mismatch("a recording, want %s; recordings fit inputs such as 16000 or 1x1x16000", want(slot))
	}
	sizes := slices.Clone(slot.Sizes)
	if length := sizes[rank-1]; !p.Fit && (n > length || n < length && slot.Dynamism == tensor.Static) {
		return nil, mismatch("%d samples, want %s; :length=fit pads with zeros or truncates", n, want(slot))
	} else if !p.Fit || n < length && slot.Dynamism != tensor.Static {
		sizes[rank-1] = n
	}
	return sizes, nil
}

// storeSamples writes as many samples as the tensor holds, in its type: floats unchanged,
// int16 as in the file.
func storeSamples(t *tensor.Tensor, samples []float32, integers bool) error {
	scale := float32(1)
	switch {
	case t.DType.IsFloat():
	case t.DType == tensor.Int16 && integers:
		scale = 1 << 15
	default:
		return fmt.Errorf("a recording requires an input of floats, or of int16 for 16-bit files")
	}
	for i, v := range samples[:min(len(samples), t.Numel())] {
		tensor.Put(t.Data[i*t.DType.Size():], t.DType, v*scale)
	}
	return nil
}
