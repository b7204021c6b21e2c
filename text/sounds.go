package text

import (
	"context"
	"fmt"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/media/sound"
)

// hearing is the conversion of recordings: to windows of a spectrogram, as Whisper's pre-processor makes them.
type hearing struct {
	dtype                 tensor.DType
	windows, bins, frames int // at most windows
}

// openSounds returns the conversion of recordings for an input [windows, bins, frames].
func openSounds(in *etrun.ValueMeta, p *processor) (converter, error) {
	h := &hearing{dtype: in.DType}
	bad := len(in.Sizes) != 3 || !in.DType.IsFloat() || in.DType == tensor.Float64
	if !bad {
		h.windows, h.bins, h.frames = in.Sizes[0], in.Sizes[1], in.Sizes[2]
		bad = h.windows < 1 || h.bins < 1 || h.bins > 1024 || h.frames < 100 || h.frames > 1<<16
	}
	if bad {
		return nil, &ConventionError{Kind: "an encoder of a sound", Method: "audio_encoder", Got: "input 0: " + describe(in),
			Want: "the windows of a spectrogram of Whisper's form, of sizes [windows, bins, frames]"}
	}
	for _, c := range []struct {
		name string
		want int
	}{{"sampling_rate", sound.MelRate}, {"hop_length", sound.MelHop}, {"n_fft", 400}, {"feature_size", h.bins}} {
		if got := p.one(c.name, float64(c.want)); got != float64(c.want) {
			return nil, &MetadataError{Name: c.name, Got: fmt.Sprint(got), Want: fmt.Sprintf("%d: the spectrogram is of Whisper's form", c.want)}
		}
	}
	return h.convert, nil
}

// convert returns the windows of a recording, whose end is filled with silence.
func (h *hearing) convert(ctx context.Context, file []byte, limit int64) (*tensor.Tensor, string, error) {
	s, err := sound.Parse(file, limit/4) // the samples, those of one channel, the spectrogram twice
	if err != nil {
		return nil, "", err
	}
	if s.Channels < 1 || len(s.Samples) < s.Channels {
		return nil, "", fmt.Errorf("%w: no samples", sound.ErrFormat)
	}
	window := h.frames * sound.MelHop
	n := sound.Resampled(len(s.Samples)/s.Channels, s.Rate, sound.MelRate)
	windows := (n + int64(window) - 1) / int64(window)
	if windows > int64(h.windows) {
		return nil, "", fmt.Errorf("%w: %d s, the model takes at most %d", sound.ErrSize, n/sound.MelRate, h.windows*window/sound.MelRate)
	}
	k := int(max(windows, 1))
	if need := int64(k) * int64(h.bins*h.frames+window) * 8; need > limit { // samples and spectrogram, both twice
		return nil, "", fmt.Errorf("%w: its samples and their spectrogram take %d bytes, the limit is %d", sound.ErrSize, need, limit)
	}
	samples := make([]float32, k*window)
	copy(samples, sound.Resample(s.Mono(), s.Rate, sound.MelRate))
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	note := fmt.Sprintf("%.2f s, %d Hz, in %d windows of %d frames", float64(n)/sound.MelRate, s.Rate, k, h.frames)
	return h.stack(samples, k), note, nil
}

// stack returns the spectrogram of k windows, one after the other.
func (h *hearing) stack(samples []float32, k int) *tensor.Tensor {
	all := make([]float32, k*h.bins*h.frames)
	sound.NewMel(h.bins).Spectrogram(samples, all)
	t := tensor.New(h.dtype, k, h.bins, h.frames)
	store, size := tensor.Storer[float32](h.dtype), h.dtype.Size()
	for w := range k {
		for b := range h.bins {
			from := all[(b*k+w)*h.frames:][:h.frames]
			store(t.Data[(w*h.bins+b)*h.frames*size:][:h.frames*size], from)
		}
	}
	return t
}
