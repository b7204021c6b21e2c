package isa

import (
	"encoding/binary"
)

// maxStream is the largest command stream in bytes: the length field has 24 bits of words, and the
// Linux driver accepts 16 MiB.
const maxStream = 16 << 20

// Payload is a parsed driver payload: the configuration that it was compiled for, and the command
// stream.
type Payload struct {
	Format  string // "COP1" or "COP2"
	Config  Config
	LocalIO bool   // COP2: inputs and outputs have separate regions, for direct drive
	Stream  []byte // a multiple of 4 bytes, sharing the payload's memory
}

// Actions of COP1 (bits 7:0 of a word).
const (
	actionConfig = 0x01
	actionStream = 0x02
	actionNop    = 0x05
)

// Entries and features of COP2.
const (
	entryStream       = 1
	featureLocal      = 2
	cop2Header        = 16
	cop2EntryHeader   = 8
	cop2MetadataBytes = 36
)

// ParsePayload parses the payload that the compiler generates for the driver, without decoding the
// stream. Errors are *Error.
func ParsePayload(b []byte) (*Payload, error) {
	if len(b) < 4 {
		return nil, payloadError(0, ErrMalformed, "%d bytes", len(b))
	}
	switch magic := string(b[:4]); magic {
	case "COP1":
		return parseCOP1(b)
	case "COP2":
		return parseCOP2(b)
	default:
		return nil, payloadError(0, ErrMalformed, "fourcc %q, want COP1 or COP2", magic)
	}
}

func word(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }

func parseCOP1(b []byte) (*Payload, error) {
	if len(b)%4 != 0 {
		return nil, payloadError(0, ErrMalformed, "%d bytes, not whole words", len(b))
	}
	p, configured := &Payload{Format: "COP1"}, false
	for at, n := 1, len(b)/4; at < n; {
		w := word(b, at)
		switch action := w & 255; action {
		case actionNop:
			at++
		case actionConfig:
			if n-at < 3 {
				return nil, payloadError(at, ErrMalformed, "truncated configuration")
			}
			c, err := ParseConfig(word(b, at+1), word(b, at+2))
			if err != nil {
				return nil, Place(DriverPayload, at, "", err)
			}
			p.Config, configured = c, true
			at += 3
		case actionStream:
			words := int(w>>8&255)<<16 | int(w>>16)
			if words > n-at-1 {
				return nil, payloadError(at, ErrMalformed, "command stream of %d words, but only %d are left", words, n-at-1)
			}
			if p.Stream != nil {
				return nil, payloadError(at, ErrUnsupported, "second command stream")
			}
			p.Stream = b[4*(at+1) : 4*(at+1+words)]
			at += 1 + words
		default:
			return nil, payloadError(at, ErrMalformed, "action %#x", action)
		}
	}
	return p, p.complete(configured)
}

// complete returns an error if a part of the payload is missing.
func (p *Payload) complete(configured bool) error {
	switch {
	case !configured:
		return payloadError(0, ErrMalformed, "no configuration")
	case len(p.Stream) == 0:
		return payloadError(0, ErrMalformed, "no command stream")
	case len(p.Stream) > maxStream:
		return payloadError(0, ErrUnsupported, "command stream of %d bytes, want at most %d", len(p.Stream), maxStream)
	}
	return nil
}

func parseCOP2(b []byte) (*Payload, error) {
	if len(b) < cop2Header {
		return nil, payloadError(0, ErrMalformed, "%d bytes, want at least %d for the header", len(b), cop2Header)
	}
	if v := word(b, 1); v != 1 {
		return nil, payloadError(1, ErrUnsupported, "version %d.%d, want 1.0", v&0xffff, v>>16)
	}
	rest := b[cop2Header:]
	if total := binary.LittleEndian.Uint64(b[8:]); total != uint64(len(rest)) {
		return nil, payloadError(2, ErrMalformed, "entries of %d bytes, but only %d are left", total, len(rest))
	}
	p, configured := &Payload{Format: "COP2"}, false
	for len(rest) > 0 {
		at := (len(b) - len(rest)) / 4
		if len(rest) < cop2EntryHeader {
			return nil, payloadError(at, ErrMalformed, "truncated entry")
		}
		kind, size := word(rest, 0), word(rest, 1)
		rest = rest[cop2EntryHeader:]
		if uint64(size) > uint64(len(rest)) || size%4 != 0 {
			return nil, payloadError(at, ErrMalformed, "entry of %d bytes, but only %d are left", size, len(rest))
		}
		if kind != entryStream || configured {
			return nil, payloadError(at, ErrUnsupported, "entry of type %d", kind)
		}
		if err := p.streamEntry(rest[:size], at+2); err != nil {
			return nil, err
		}
		configured, rest = true, rest[size:]
	}
	return p, p.complete(configured)
}

// streamEntry reads a COP2 command stream: a length, metadata of that many bytes,
// and the stream.
func (p *Payload) streamEntry(b []byte, at int) error {
	if len(b) < 4+cop2MetadataBytes {
		return payloadError(at, ErrMalformed, "entry of %d bytes, want at least %d for the metadata", len(b), cop2MetadataBytes)
	}
	size, meta := word(b, 0), b[4:]
	if size < cop2MetadataBytes-4 || size%4 != 0 || uint64(size) > uint64(len(meta)) {
		return payloadError(at, ErrMalformed, "metadata of %d bytes, but only %d are left", size, len(meta))
	}
	if string(meta[:4]) != "VEUM" {
		return payloadError(at+1, ErrMalformed, "metadata tag %q, want VEUM", meta[:4])
	}
	if v := word(meta, 1); v != 1 {
		return payloadError(at+2, ErrUnsupported, "metadata version %d.%d, want 1.0", v&0xffff, v>>16)
	}
	c, err := ParseConfig(word(meta, 3), word(meta, 4))
	if err != nil {
		return payloadError(at+4, ErrUnsupported, "%v", err)
	}
	p.Config, p.LocalIO, p.Stream = c, word(meta, 5) == featureLocal, meta[size:]
	return nil
}
