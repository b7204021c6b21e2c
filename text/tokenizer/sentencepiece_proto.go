package tokenizer

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Types of pieces.
const (
	pieceNormal      = 1
	pieceUnknown     = 2
	pieceControl     = 3
	pieceUserDefined = 4
	pieceUnused      = 5
	pieceByte        = 6
)

// Types of models.
const (
	modelUnigram = 1
	modelBPE     = 2
)

// modelProto is the part of sentencepiece_model.proto that encoding and decoding need.
type modelProto struct {
	pieces       []piece
	trainer      trainerSpec
	normalizer   normalizerSpec
	denormalizer normalizerSpec
	samples      []sample
}

type piece struct {
	text  string
	score float32
	kind  uint64
}

type trainerSpec struct {
	model          uint64
	suffixSpace    bool // treat_whitespace_as_suffix
	byteFallback   bool
	unknownSurface string
	bos, eos       string
}

type normalizerSpec struct {
	charsmap     []byte
	dummyPrefix  bool
	removeSpaces bool
	escapeSpaces bool
}

type sample struct{ input, expected string }

// field is a field of a message: a number or bytes.
type field struct {
	number protowire.Number
	value  uint64
	bytes  []byte
}

// eachField yields the fields of a message. Types of fields are not checked against the schema
// here: a field of the wrong type reads as zero or empty.
func eachField(data []byte, place string, yield func(f field) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return malformed(place, "%w", protowire.ParseError(n))
		}
		data = data[n:]
		f := field{number: number}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(data)
			f.value = uint64(v)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return malformed(place, "field %d: %w", number, protowire.ParseError(n))
		}
		data = data[n:]
		if err := yield(f); err != nil {
			return err
		}
	}
	return nil
}

// isSentencePiece reports whether the data begins with a piece.
func isSentencePiece(data []byte) bool {
	number, kind, n := protowire.ConsumeTag(data)
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return false
	}
	first, n := protowire.ConsumeBytes(data[n:])
	if n < 0 {
		return false
	}
	p, err := readPiece(first, "piece 0")
	return err == nil && p.text != ""
}

func readModel(data []byte) (*modelProto, error) {
	spec := normalizerSpec{dummyPrefix: true, removeSpaces: true, escapeSpaces: true}
	m := &modelProto{
		trainer:    trainerSpec{model: modelUnigram, unknownSurface: " \u2047 ", bos: "<s>", eos: "</s>"},
		normalizer: spec, denormalizer: spec,
	}
	err := eachField(data, "model", func(f field) (err error) {
		switch f.number {
		case 1:
			var p piece
			p, err = readPiece(f.bytes, fmt.Sprintf("piece %d", len(m.pieces)))
			m.pieces = append(m.pieces, p)
			if len(m.pieces) > maxTokens {
				err = unsupported("pieces", "more than %d", maxTokens)
			}
		case 2:
			err = m.trainer.read(f.bytes)
		case 3:
			err = m.normalizer.read(f.bytes, "normalizer_spec")
		case 4:
			err = m.readSamples(f.bytes)
		case 5:
			err = m.denormalizer.read(f.bytes, "denormalizer_spec")
		}
		return err
	})
	return m, err
}

func readPiece(data []byte, place string) (piece, error) {
	p := piece{kind: pieceNormal}
	err := eachField(data, place, func(f field) error {
		switch f.number {
		case 1:
			p.text = string(f.bytes)
		case 2:
			p.score = math.Float32frombits(uint32(f.value))
		case 3:
			p.kind = f.value
		}
		return nil
	})
	switch {
	case err != nil:
		return p, err
	case p.text == "":
		return p, malformed(place, "no text")
	case len(p.text) > maxPiece:
		return p, unsupported(place, "%d bytes, at most %d are allowed", len(p.text), maxPiece)
	case p.kind < pieceNormal || p.kind > pieceByte:
		return p, unsupported(place, "type %d", p.kind)
	}
	return p, checkScore(float64(p.score), place)
}

func (t *trainerSpec) read(data []byte) error {
	return eachField(data, "trainer_spec", func(f field) error {
		switch f.number {
		case 3:
			t.model = f.value
		case 24:
			t.suffixSpace = f.value != 0
		case 35:
			t.byteFallback = f.value != 0
		case 44:
			t.unknownSurface = string(f.bytes)
		case 46:
			t.bos = string(f.bytes)
		case 47:
			t.eos = string(f.bytes)
		}
		return nil
	})
}

func (s *normalizerSpec) read(data []byte, place string) error {
	return eachField(data, place, func(f field) error {
		switch f.number {
		case 2:
			s.charsmap = f.bytes
		case 3:
			s.dummyPrefix = f.value != 0
		case 4:
			s.removeSpaces = f.value != 0
		case 5:
			s.escapeSpaces = f.value != 0
		}
		return nil
	})
}

func (m *modelProto) readSamples(data []byte) error {
	return eachField(data, "self_test_data", func(f field) error {
		if f.number != 1 {
			return nil
		}
		var s sample
		err := eachField(f.bytes, "self_test_data", func(f field) error {
			switch f.number {
			case 1:
				s.input = string(f.bytes)
			case 2:
				s.expected = string(f.bytes)
			}
			return nil
		})
		m.samples = append(m.samples, s)
		return err
	})
}

// check rejects models that are not supported exactly.
func (m *modelProto) check() error {
	names := map[uint64]string{3: "WORD", 4: "CHAR"}
	switch {
	case len(m.pieces) == 0:
		return malformed("model", "no pieces")
	case m.trainer.model != modelUnigram && m.trainer.model != modelBPE:
		return unsupported("trainer_spec.model_type", "%d %s, want UNIGRAM or BPE", m.trainer.model, names[m.trainer.model])
	case m.trainer.suffixSpace:
		return unsupported("trainer_spec.treat_whitespace_as_suffix", "true")
	case !m.normalizer.escapeSpaces:
		return unsupported("normalizer_spec.escape_whitespaces", "false")
	case len(m.denormalizer.charsmap) > 0:
		return unsupported("denormalizer_spec.precompiled_charsmap", "%d bytes, want none", len(m.denormalizer.charsmap))
	}
	return nil
}

// entries returns the pieces of a type.
func (m *modelProto) entries(kind uint64) (list []entry) {
	for id, p := range m.pieces {
		if p.kind == kind {
			list = append(list, entry{p.text, int32(id)})
		}
	}
	return list
}
