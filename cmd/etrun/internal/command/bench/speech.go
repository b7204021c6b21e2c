package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/internal/duration"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/speech"
)

// modelHead is what the reports of models of language and of speech have.
type modelHead struct {
	Schema      string        `json:"schema"`
	Environment environment   `json:"environment"`
	Interrupted bool          `json:"interrupted"`
	Model       string        `json:"model"`
	Process     processMemory `json:"process_bytes"`
}

func (b *benchCommand) head(schema, path string) modelHead {
	return modelHead{Schema: schema, Environment: newEnvironment(b.Version), Model: path}
}

// eachThreads measures with each number of threads.
func (b *benchCommand) eachThreads(h *modelHead, measure func(o *session.Options) error) (err error) {
	for i := 0; i < len(b.threads) && err == nil; i++ {
		o := b.Options
		o.Threads = b.threads[i]
		err = measure(&o)
	}
	h.Interrupted, h.Environment.LoadAfter = err != nil, loadAverage()
	h.Process = processMemory{int64(processStatus().VmHWM), liveHeap()}
	return err
}

// writeRuns writes a report with some runs, unless err is another error than an interruption.
func (b *benchCommand) writeRuns(ctx context.Context, err error, runs int, r interface{ print(b *benchCommand) }) error {
	switch {
	case err != nil && (ctx.Err() == nil || runs == 0):
		return err
	case b.JSON:
		return errors.Join(err, b.WriteJSON(r))
	}
	r.print(b)
	return err
}

// speechReport is the JSON object of bench --audio.
type speechReport struct {
	modelHead
	Family  string       `json:"family"`
	Seconds float64      `json:"audio_s"` // of the recording
	Runs    []speechRuns `json:"runs"`
}

// speechRuns are the measurements with one number of threads.
type speechRuns struct {
	Threads int           `json:"threads"`
	Tokens  int           `json:"tokens"` // of each run
	Took    stats.Summary `json:"took_ms"`
	First   stats.Summary `json:"first_token_ms"`
	Speed   float64       `json:"audio_s_per_s"` // seconds of sound that are transcribed in a second
}

// measureSpeech measures a model of speech on a recording, with each number of threads.
func (b *benchCommand) measureSpeech(ctx context.Context, path string) error {
	r := &speechReport{modelHead: b.head("etrun.bench.speech/1", path)}
	err := b.eachThreads(&r.modelHead, func(o *session.Options) error { return b.transcribe(ctx, o, r) })
	return b.writeRuns(ctx, err, len(r.Runs), r)
}

// recorded returns the samples of the recording.
func (b *benchCommand) recorded(ctx context.Context, rate int) ([]float32, error) {
	limit := b.InputLimit()
	file, err := openfile.ReadFile(ctx, b.audio, openfile.Rules{Limit: limit})
	if err != nil {
		return nil, err
	}
	s, err := sound.Parse(file, limit)
	if err == nil && sound.Resampled(len(s.Samples)/s.Channels, s.Rate, rate) > limit/4 {
		err = sound.ErrSize
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.audio, err)
	}
	return sound.Resample(s.Mono(), s.Rate, rate), nil
}

// transcribe measures with one number of threads. The first run is not counted.
func (b *benchCommand) transcribe(ctx context.Context, o *session.Options, r *speechReport) error {
	s, err := session.Open(ctx, r.Model, o)
	if err != nil {
		return err
	}
	defer s.Close()
	config, err := speech.OpenConfig(ctx, cmp.Or(b.language.Tokenizer, filepath.Dir(r.Model)), s.MethodNames(), nil)
	if err != nil {
		return err
	}
	m, err := speech.Load(ctx, s.Program, config)
	if err != nil {
		return session.WithHint(err)
	}
	defer m.Close()
	samples, err := b.recorded(ctx, m.Info().Rate)
	if err != nil {
		return err
	}
	r.Family, r.Seconds = string(m.Info().Family), float64(len(samples))/float64(m.Info().Rate)
	runs, share := speechRuns{Threads: s.Threads()}, b.plan.Duration/time.Duration(len(b.threads))
	b.Progress.During(share, "transcribing %s", duration.FormatMS(1000*r.Seconds))
	var took, first []time.Duration
	begun := time.Now()
	for n := 0; n < 2 || time.Since(begun) < share; n++ {
		start := time.Now()
		var t *speech.Transcript
		if t, err = m.Transcribe(ctx, samples, speech.Options{}); err != nil {
			break
		}
		if runs.Tokens = len(t.Tokens); n > 0 {
			took, first = append(took, time.Since(start)), append(first, t.FirstToken)
		}
	}
	if len(took) > 0 {
		runs.Took, runs.First = stats.Of(took), stats.Of(first)
		runs.Speed = r.Seconds / runs.Took.P50 * 1e3
		r.Runs = append(r.Runs, runs)
	}
	return err
}

func (r *speechReport) print(b *benchCommand) {
	e := &r.Environment
	fmt.Fprintf(b.Out, "%s; %s, %s; load average %.2f\n", e.Version, cmp.Or(e.CPU, "–"), cli.Count(e.Processors, "processor", "processors"), e.LoadBefore)
	fmt.Fprintf(b.Out, "%s: %s, %s of sound; medians\n", cli.Printable(r.Model), r.Family, duration.FormatMS(1000*r.Seconds))
	fmt.Fprintf(b.Out, "%8s %14s %12s %12s %8s %6s\n", "threads", "s of sound/s", "took", "first token", "tokens", "runs")
	for i := range r.Runs {
		run := &r.Runs[i]
		fmt.Fprintf(b.Out, "%8d %14.4g %12s %12s %8d %6d\n", run.Threads, run.Speed, duration.FormatMS(run.Took.P50), duration.FormatMS(run.First.P50), run.Tokens, run.Took.N)
	}
	fmt.Fprintf(b.Out, "process: at most %s resident, %s live on the Go heap\n", bytesize.Format(r.Process.PeakResident), bytesize.Format(r.Process.GoHeap))
}
