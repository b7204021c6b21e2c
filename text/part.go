package text

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Medium is a kind of parts of prompts that are not text.
type Medium string

// The media.
const (
	Picture Medium = "picture"
	Sound   Medium = "sound"
)

// Part is a picture or a sound in prompts of a model: rows of numbers, which the model's encoder has made of it, in the places of tokens. It
// is immutable, and holds the rows: 4 bytes for each number. [Model.EncodePart] makes it.
type Part struct {
	medium Medium
	note   string
	width  int
	ids    []int
	rows   []float32 // width for each id
}

// Medium returns what the part is.
func (p *Part) Medium() Medium { return p.medium }

// Tokens returns what stands for the part in a prompt: an id below 0 for each row, by the digest of the part's content. A prompt that has
// them is continued with the part in [Options].
func (p *Part) Tokens() []int { return slices.Clone(p.ids) }

// Note describes how the file was converted for the encoder.
func (p *Part) Note() string { return p.note }

// bytes returns the memory of the part.
func (p *Part) bytes() int64 { return int64(len(p.rows))*4 + int64(len(p.ids))*8 }

// digest identifies the content of a part.
type digest [sha256.Size]byte

func digestOf(medium Medium, file []byte) digest {
	h := sha256.New()
	h.Write([]byte(medium))
	h.Write([]byte{0})
	h.Write(file)
	return digest(h.Sum(nil))
}

// ids returns an id below 0 for each of n rows of the content. Equal rows of texts are those with equal ids, so ids of different contents
// have to differ: they are digests themselves.
func (d digest) ids(n int) []int {
	list := make([]int, n)
	var b [sha256.Size + 8]byte
	copy(b[:], d[:])
	for i := range list {
		binary.LittleEndian.PutUint64(b[sha256.Size:], uint64(i))
		sum := sha256.Sum256(b[:])
		list[i] = -1 - int(binary.LittleEndian.Uint64(sum[:])&math.MaxInt)
	}
	return list
}

// WithoutDigests returns a prompt with -1 for each row of a part.
func WithoutDigests(prompt []int) []int {
	list := slices.Clone(prompt)
	for i := range list {
		list[i] = max(list[i], -1)
	}
	return list
}

// rowsOf returns the rows of parts by their ids, nil for no parts.
func rowsOf(parts []*Part) map[int][]float32 {
	if len(parts) == 0 {
		return nil
	}
	rows := make(map[int][]float32)
	for _, p := range parts {
		for i, id := range p.ids {
			rows[id] = p.rows[i*p.width : (i+1)*p.width]
		}
	}
	return rows
}

// setRows sets the rows of the tokens and parts of a call.
func (s *Session) setRows(ctx context.Context, first, n int) error {
	c := &s.model.call
	s.in.rows = slices.Grow(s.in.rows[:0], n*c.rows)[:n*c.rows]
	for k := 0; k < n; {
		if id := s.tokenAt(first + k); id < 0 {
			row, ok := s.rowOf[id]
			if !ok { // of a part that an earlier call had
				return &OptionError{Option: "parts", Got: "a prompt without one of its parts", Want: "all parts of the prompt"}
			}
			copy(s.in.rows[k*c.rows:], row)
			k++
			continue
		}
		end := k + 1
		for end < min(n, k+c.tokensMost) && s.tokenAt(first+end) >= 0 {
			end++
		}
		if err := s.embedTokens(ctx, first+k, s.in.rows[k*c.rows:end*c.rows]); err != nil {
			return err
		}
		k = end
	}
	sizes := [...]int{1, n, c.rows}
	if c.rowType == tensor.Float32 {
		return etrun.Set(s.method, 0, s.in.rows, sizes[3-c.rank:]...)
	}
	half := tensor.FloatToBFloat
	if c.rowType == tensor.Float16 {
		half = tensor.FloatToHalf
	}
	s.in.halves = slices.Grow(s.in.halves[:0], len(s.in.rows))[:len(s.in.rows)]
	for i, x := range s.in.rows {
		s.in.halves[i] = half(x)
	}
	return etrun.Set(s.method, 0, s.in.halves, sizes[3-c.rank:]...)
}

// embedTokens writes the rows of the tokens from a position on.
func (s *Session) embedTokens(ctx context.Context, first int, rows []float32) error {
	c := &s.model.call
	n := len(rows) / c.rows
	call := n
	if c.tokensFixed {
		call = c.tokensMost
	}
	err := s.in.set(s.embed, 0, c.tokens, call, func(k int) int {
		if k < n {
			return s.tokenAt(first + k)
		}
		return 0
	})
	if err == nil {
		err = s.embed.Execute(ctx)
	}
	if err != nil {
		return err
	}
	v, err := s.embed.Output(0)
	if err != nil {
		return err
	}
	t := v.Tensor
	if v.Kind != tensor.KindTensor || !isLogits(t.DType) || t.Numel() != call*c.rows || !t.IsContiguous() {
		return &ConventionError{Method: methodRows, Got: fmt.Sprintf("output 0: %v", v), Want: fmt.Sprintf("%d rows of %d numbers", call, c.rows)}
	}
	made := float32s(t, s.in.made)
	if copy(rows, made); t.DType != tensor.Float32 {
		s.in.made = made
	}
	return nil
}

// checkParts refuses parts of other models.
func (m *Model) checkParts(parts []*Part) error {
	for _, p := range parts {
		if m.media == nil || p.width != m.media.width {
			return &OptionError{Option: "parts", Got: "a " + string(p.medium) + " of another model", Want: "parts that this model has encoded"}
		}
	}
	return nil
}
