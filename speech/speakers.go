package speech

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// speakers drives Sortformer: the probability of each speaker for each frame. Frames are computed in chunks behind those of the recent past
// and the most telling ones of all before.
type speakers struct {
	timer
	preprocessor, preEncode, encode *method
	frame                           float64 // seconds
	cache                           int     // frames of the past that are kept
	count                           int     // speakers
}

// Lengths of the exporter's runner.
const (
	speakerChunk  = 124 // frames that are computed at once
	speakerRecent = 124 // frames before them
	mostSpeakers  = 1 << 10
)

func (d *speakers) load(ctx context.Context, s *setup) (err error) {
	err = s.methods(ctx, loaded{&d.preprocessor, "preprocessor", 2, 2}, loaded{&d.preEncode, "pre_encode", 2, 2}, loaded{&d.encode, "encode", 2, 1})
	if err != nil {
		return err
	}
	err = errors.Join(d.preprocessor.want(0, 1, true, "samples"), d.preprocessor.want(1, 1, false, "their number"), d.preEncode.want(0, 3, true, "a spectrogram"),
		d.preEncode.want(1, 1, false, "its length"), d.encode.want(0, 3, true, "frames"), d.encode.want(1, 1, false, "their number"))
	if err != nil {
		return err
	}
	factor, err := number(ctx, s.program, "subsampling_factor", 8)
	if err != nil {
		return err
	}
	stride, err := numbers(ctx, s.program, "window_stride")
	if d.frame = 0.01; len(stride) == 1 && stride[0] > 0 && stride[0] < 1 {
		d.frame = stride[0]
	}
	d.frame *= float64(max(1, factor))
	if err != nil {
		return err
	}
	if d.cache, err = number(ctx, s.program, "spkcache_len", 188); err != nil {
		return err
	}
	d.count, err = number(ctx, s.program, "max_num_of_spks", 4)
	if most := d.encode.inputs[0].Sizes[1] - speakerChunk - speakerRecent; err == nil && (d.cache > most || d.count < 1 || d.count > mostSpeakers) {
		err = &ConventionError{Method: "encode", Got: fmt.Sprintf("%d frames of the past, %d speakers", d.cache, d.count),
			Want: fmt.Sprintf("at most %d frames, 1 to %d speakers", most, mostSpeakers)}
	}
	return err
}

func (d *speakers) info(i *Info) { i.Times, i.Speakers = true, d.count }

// Close implements driver.
func (d *speakers) Close() error { return closeAll(d.preprocessor, d.preEncode, d.encode) }

// row is a frame: its vector, and its probabilities in the last run.
type row struct{ vector, speakers []float32 }

// limit implements driver.
func (d *speakers) limit() int { return d.preprocessor.inputs[0].Sizes[0] }

// transcribe implements driver.
func (d *speakers) transcribe(ctx context.Context, f *feed, o *Options, yield func(*Segment) error) (*Transcript, error) {
	t := &Transcript{}
	open := make([]int, d.count) // the first frame of a segment, and 1; 0 for none
	end := func(speaker, frame int) error {
		s := Segment{Start: seconds(float64(open[speaker]-1) * d.frame), End: seconds(float64(frame) * d.frame), Speaker: speaker}
		open[speaker] = 0
		t.Segments = append(t.Segments, s)
		return yield(&s)
	}
	var past []row // the kept frames, then the recent ones
	kept := 0
	at := 0
	compute := func(chunk []row) error {
		all := append(slices.Clone(past), chunk...)
		if err := d.run(ctx, all); err != nil {
			return err
		}
		for i, r := range all[len(past):] {
			for speaker, p := range r.speakers {
				switch speaks := float64(p) > o.threshold(); {
				case speaks && open[speaker] == 0:
					open[speaker] = at + i + 1
				case !speaks && open[speaker] > 0:
					if err := end(speaker, at+i); err != nil {
						return err
					}
				}
			}
		}
		kept += max(0, len(all)-kept-speakerRecent)
		best := d.best(all[:kept])
		past, kept = append(best, all[kept:]...), len(best)
		at += len(chunk)
		return nil
	}
	if err := d.chunks(ctx, f, compute); err != nil {
		return nil, err
	}
	for speaker, first := range open {
		if first > 0 {
			if err := end(speaker, at); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// chunks computes the frames of a recording in chunks.
func (d *speakers) chunks(ctx context.Context, f *feed, compute func([]row) error) (err error) {
	var rows []row
	for _, part := range f.parts(d.preprocessor.inputs[0].Sizes[0], &err) {
		list, err := d.rows(ctx, part)
		if err != nil {
			return err
		}
		for rows = append(rows, list...); len(rows) >= speakerChunk; rows = slices.Clone(rows[speakerChunk:]) {
			if err := compute(rows[:speakerChunk]); err != nil {
				return err
			}
		}
	}
	if err != nil || len(rows) == 0 {
		return err
	}
	return compute(rows)
}

// rows returns the vectors of the frames of a part of a recording.
func (d *speakers) rows(ctx context.Context, part []float32) (list []row, err error) {
	mel, bins, n, err := d.spectrogram(ctx, pad(part, leastFrame))
	if err != nil {
		return nil, err
	}
	most := d.preEncode.inputs[0].Sizes[1]
	for at := 0; at < n; at += most {
		block := make([]float32, most*bins)
		length := copy(block, mel[at*bins:min(at+most, n)*bins]) / bins
		if err := errors.Join(d.preEncode.floats(0, block, 1, most, bins), d.preEncode.ints(1, []int64{int64(length)}, 1)); err != nil {
			return nil, err
		}
		if err := d.preEncode.Execute(ctx); err != nil {
			return nil, err
		}
		out, err := d.preEncode.tensor(0, 3)
		if err != nil {
			return nil, err
		}
		count, err := d.preEncode.integer(1)
		if err != nil {
			return nil, err
		}
		vectors, err := d.preEncode.result(0)
		if err != nil {
			return nil, err
		}
		width := out.Sizes[2]
		if count < 0 || count > out.Sizes[1] || width != d.encode.inputs[0].Sizes[2] {
			return nil, &ConventionError{Method: "pre_encode", Got: fmt.Sprintf("%d frames of %d, %d wide", count, out.Sizes[1], width), Want: "frames as encode takes them"}
		}
		for i := range count {
			list = append(list, row{vector: slices.Clone(vectors[i*width : (i+1)*width])})
		}
	}
	return list, nil
}

// spectrogram returns the frames of samples, one after the other.
func (d *speakers) spectrogram(ctx context.Context, samples []float32) (mel []float32, bins, n int, err error) {
	out, columns, n, err := featuresOf(ctx, d.preprocessor, samples)
	if err != nil {
		return nil, 0, 0, err
	}
	bins, n = out.Sizes[1], max(0, min(n, out.Sizes[2]))
	if bins != d.preEncode.inputs[0].Sizes[2] {
		return nil, 0, 0, &ConventionError{Method: "preprocessor", Got: fmt.Sprintf("%d bins", bins), Want: "those of pre_encode"}
	}
	mel = make([]float32, n*bins)
	for t := range n {
		for b := range bins {
			mel[t*bins+b] = columns[b*out.Sizes[2]+t]
		}
	}
	return mel, bins, n, nil
}

// run computes the probabilities of frames.
func (d *speakers) run(ctx context.Context, rows []row) error {
	width := d.encode.inputs[0].Sizes[2]
	x := make([]float32, 0, len(rows)*width)
	for _, r := range rows {
		x = append(x, r.vector...)
	}
	n := len(rows)
	if n == 1 { // the program takes two frames at least
		x, n = append(x, make([]float32, width)...), 2
	}
	if err := errors.Join(d.encode.floats(0, x, 1, n, width), d.encode.ints(1, []int64{int64(len(rows))}, 1)); err != nil {
		return err
	}
	if err := d.encode.Execute(ctx); err != nil {
		return err
	}
	p, err := d.encode.result(0)
	if err != nil {
		return err
	}
	if len(p) < len(rows)*d.count {
		return &ConventionError{Method: "encode", Got: fmt.Sprintf("%d probabilities", len(p)), Want: fmt.Sprintf("those of %d speakers", d.count)}
	}
	for i := range rows {
		rows[i].speakers = slices.Clone(p[i*d.count : (i+1)*d.count])
	}
	return nil
}

// best returns the frames in which a speaker is most probable, as many as are kept, in their order.
func (d *speakers) best(rows []row) []row {
	if len(rows) <= d.cache {
		return slices.Clone(rows)
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if x, y := slices.Max(rows[a].speakers), slices.Max(rows[b].speakers); x > y {
			return -1
		} else if x < y {
			return 1
		}
		return 0
	})
	slices.Sort(order[:d.cache])
	list := make([]row, d.cache)
	for i, k := range order[:d.cache] {
		list[i] = rows[k]
	}
	return list
}

// SpeakerOf returns the speaker of a segment: the one of the segments of a program of the family Speakers that shares the most time with it,
// -1 if none does.
func SpeakerOf(s *Segment, who []Segment) int {
	shared := map[int]time.Duration{}
	best := -1
	for i := range who {
		w := &who[i]
		if common := min(s.End, w.End) - max(s.Start, w.Start); common > 0 {
			shared[w.Speaker] += common
			if best < 0 || shared[w.Speaker] > shared[best] {
				best = w.Speaker
			}
		}
	}
	return best
}
