package speech

import (
	"compress/zlib"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/etrun-go/etrun/media/sound"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// decoded are the tokens of a window.
type decoded struct {
	tokens      []int // with the end token, if it came
	logProb     float64
	noSpeech    float64
	temperature float64
}

// Limits of OpenAI's decoder beyond which a text is decoded again, or taken for silence.
const (
	mostCompression = 2.4
	leastLogProb    = -1.0
	mostNoSpeech    = 0.6
	temperatureStep = 0.2
)

// decode writes the tokens of the window that is encoded.
func (w *whisper) decode(ctx context.Context, o *Options, language string) (*decoded, error) {
	prompt, start, err := w.prompt(o, language)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(o.Seed, 0))
	for temperature := o.Temperature; ; temperature += temperatureStep {
		d, err := w.attempt(ctx, o, prompt, start, temperature, r)
		if err != nil || !o.Fallback || temperature+temperatureStep > 1 {
			return d, err
		}
		text, err := tokenizer.Decode(w.tok, w.words(d.tokens))
		if err != nil || d.noSpeech > mostNoSpeech || d.logProb >= leastLogProb && compression(text) <= mostCompression {
			return d, err
		}
		if err := w.restart(); err != nil {
			return nil, err
		}
	}
}

// attempt writes tokens until the end token, or until there is no room.
func (w *whisper) attempt(ctx context.Context, o *Options, prompt []int, start int, temperature float64, r *rand.Rand) (*decoded, error) {
	d := &decoded{temperature: temperature}
	most := w.positions - len(prompt)
	if o.MaxTokens > 0 {
		most = min(most, o.MaxTokens)
	}
	var logits []float32
	var err error
	for i, token := range prompt {
		if logits, err = w.step(ctx, token, i); err != nil {
			return nil, err
		}
		if i == start && w.noSpeech >= 0 && w.noSpeech < len(logits) {
			d.noSpeech = math.Exp(float64(logits[w.noSpeech]) - logSum(logits))
		}
	}
	sum := 0.0
	for len(d.tokens) < most {
		all := w.applyRules(logits, d.tokens, o)
		next := choose(logits, temperature, r)
		sum += float64(logits[next]) - all
		w.mark()
		d.tokens = append(d.tokens, next)
		if slices.Contains(w.ends, next) || len(d.tokens) == most {
			break
		}
		if logits, err = w.step(ctx, next, len(prompt)+len(d.tokens)-1); err != nil {
			return nil, err
		}
	}
	d.logProb = sum / float64(max(1, len(d.tokens)))
	return d, nil
}

// applyRules excludes the tokens that cannot follow: those of generation_config.json and, with times, those that OpenAI's rules exclude.
// Times come in pairs around a text and never decrease; the first is within a second.
// It returns the logarithm of the sum that probabilities are divided by: that of all tokens but for the choice between times and text.
func (w *whisper) applyRules(logits []float32, tokens []int, o *Options) (all float64) {
	if !o.AllTokens {
		suppress(logits, w.suppressed)
		if len(tokens) == 0 {
			suppress(logits, w.suppressedFirst)
		}
	}
	if !o.Times {
		return logSum(logits)
	}
	exclude := func(from, to int) {
		for i := max(0, from); i < min(to, len(logits)); i++ {
			logits[i] = float32(math.Inf(-1))
		}
	}
	n := len(tokens)
	last := n >= 1 && tokens[n-1] >= w.times
	before := n < 2 || tokens[n-2] >= w.times
	suppress(logits, []int{w.noTimes})
	switch {
	case last && before:
		exclude(w.times, len(logits))
	case last:
		exclude(0, w.end)
	}
	for i := n - 1; i >= 0; i-- {
		if tokens[i] < w.times {
			continue
		}
		least := tokens[i] + 1
		if last && !before {
			least = tokens[i]
		}
		exclude(w.times, least)
		break
	}
	if n == 0 {
		exclude(0, w.times)
		exclude(w.times+firstTimeSteps+1, len(logits))
	}
	all = logSum(logits)
	if logSum(logits[w.times:]) > float64(slices.Max(logits[:w.times])) {
		exclude(0, w.times)
	}
	return all
}

// choose returns the most likely token, or one that is drawn.
func choose(logits []float32, temperature float64, r *rand.Rand) int {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	if temperature <= 0 {
		return best
	}
	sum := 0.0
	weights := make([]float64, len(logits))
	for i, v := range logits {
		weights[i] = math.Exp(float64(v-logits[best]) / temperature)
		sum += weights[i]
	}
	at := r.Float64() * sum
	for i, p := range weights {
		if at -= p; at < 0 {
			return i
		}
	}
	return best
}

// logSum is the logarithm of the sum of exponentials.
func logSum(logits []float32) float64 {
	if len(logits) == 0 {
		return math.Inf(-1)
	}
	top := float64(slices.Max(logits))
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}

// compression is how many times longer a text is than its compressed form: a text that repeats itself has a high one.
func compression(text string) float64 {
	var n countedBytes
	z := zlib.NewWriter(&n)
	_, _ = io.WriteString(z, text) // counting does not fail
	_ = z.Close()
	return float64(len(text)) / float64(n)
}

type countedBytes int

func (n *countedBytes) Write(b []byte) (int, error) {
	*n += countedBytes(len(b))
	return len(b), nil
}

// words returns the tokens of a text: those before the end token in the vocabulary.
func (w *whisper) words(tokens []int) (list []int) {
	for _, id := range tokens {
		if id < w.end {
			list = append(list, id)
		}
	}
	return list
}

// segments divides the tokens of a window that begins at a sample into segments, and returns where the next window begins. A text between
// two times is a segment; what follows the last complete one is written again from there, unless the recording has one window.
func (w *whisper) segments(d *decoded, o *Options, seek, length int, only bool) (next int, list []Segment, err error) {
	next = seek + length
	if d.noSpeech > mostNoSpeech && d.logProb < leastLogProb && o.Fallback {
		return next, nil, nil
	}
	begin := seconds(float64(seek) / sound.MelRate)
	at := func(token int) time.Duration { return begin + seconds(float64(token-w.times)*timeStep) }
	add := func(start, end time.Duration, tokens []int) {
		s := Segment{Start: start, End: end, Tokens: w.words(tokens), Speaker: -1, Window: begin, Temperature: d.temperature, LogProb: d.logProb, NoSpeech: d.noSpeech}
		var failed error
		if s.Text, failed = tokenizer.Decode(w.tok, s.Tokens); failed != nil {
			err = failed
		}
		s.Compression = compression(s.Text)
		list = append(list, s)
	}
	tokens := d.tokens
	if n := len(tokens); n > 0 && slices.Contains(w.ends, tokens[n-1]) {
		tokens = tokens[:n-1]
	}
	if !o.Times {
		add(begin, begin+seconds(float64(length)/sound.MelRate), tokens)
		return next, list, err
	}
	isTime := func(i int) bool { return i >= 0 && i < len(tokens) && tokens[i] >= w.times }
	single := isTime(len(tokens)-1) && !isTime(len(tokens)-2) // the window's last segment is complete, and nothing is said after it
	from, cuts := 0, 0
	for i := 1; i <= len(tokens); i++ {
		if i < len(tokens) && !(isTime(i) && isTime(i-1)) || i == len(tokens) && !(single && cuts > 0) {
			continue
		}
		if cuts++; isTime(from) && isTime(i-1) {
			add(at(tokens[from]), at(tokens[i-1]), tokens[from:i])
		}
		from = i
	}
	switch {
	case cuts == 0:
		end := begin + seconds(float64(length)/sound.MelRate)
		if n := len(tokens); n > 0 {
			for i := n - 1; i >= 0; i-- {
				if isTime(i) && tokens[i] > w.times {
					end = at(tokens[i])
					break
				}
			}
		}
		add(begin, end, tokens)
	case !single && !only && isTime(from-1):
		next = seek + max(1, tokens[from-1]-w.times)*int(timeStep*sound.MelRate)
	}
	return next, list, err
}
