package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
)

// ErrLimit is the class of images that exceed the limits of memory, pixels or work.
var ErrLimit = errors.New("too large")

// Limits of an image before its pixels are decoded.
const (
	maxPixels = 1 << 26
	// maxWork is in steps of about a nanosecond each.
	maxWork = 10_000_000_000
)

// header is the description of an image before decoding.
type header struct {
	format string
	w, h   int
	memory int64  // upper bound of the bytes that decoding allocates
	work   int64  // upper bound of the steps that decoding takes
	why    string // explanation of the work
}

// format is an image format. The decoder often calls check, and ends with its error.
type format struct {
	name, magic string
	kind        string // at byte 8; empty for none
	examine     func(file []byte) (header, error)
	decode      func(file []byte, check func() error) (rows, error)
}

// formats are the image formats by their first bytes.
var formats = []format{
	{"png", pngMagic, "", examinePNG, decodePNG},
	{"jpeg", "\xff\xd8", "", examineJPEG, decodeJPEG},
	{"gif", "GIF8", "", examineGIF, decodeGIF},
	{"webp", "RIFF", "WEBP", examineWebP, decodeWebP},
}

// formatOf returns nil for unknown formats.
func formatOf(start []byte) *format {
	for i := range formats {
		f := &formats[i]
		if bytes.HasPrefix(start, []byte(f.magic)) && (f.kind == "" || len(start) >= StartBytes && string(start[8:StartBytes]) == f.kind) {
			return &formats[i]
		}
	}
	return nil
}

// StartBytes is the number of first bytes that CheckStart needs.
const StartBytes = 12

// CheckStart returns an error if start is not the beginning of an image.
func CheckStart(start []byte) error {
	if formatOf(start) == nil {
		return fmt.Errorf("picture: unknown format: first bytes %q, want a PNG, JPEG, GIF or WebP file", start)
	}
	return nil
}

// examine reads the header of an image and rejects it if it is too large.
func examine(file []byte) (header, error) {
	if err := CheckStart(file[:min(len(file), StartBytes)]); err != nil {
		return header{}, err
	}
	h, err := formatOf(file).examine(file)
	if err != nil {
		return h, fmt.Errorf("picture: %w", err)
	}
	return h, h.check()
}

// Memory returns an upper bound of the bytes that an image takes when it is decoded, by its header; an error if it is no image, or too large.
func Memory(file []byte) (int64, error) {
	h, err := examine(file)
	return h.memory + 6*int64(h.w)*int64(h.h), err // and its pixels, twice
}

// checkSize limits the pixels, on which all other estimates depend.
func checkSize(w, h int) error {
	if w < 1 || h < 1 || w > maxPixels/h {
		return fmt.Errorf("%w: %d×%d pixels, want at most %d in total: scale the image down", ErrLimit, w, h, maxPixels)
	}
	return nil
}

func (h *header) check() error {
	if h.work > maxWork {
		return fmt.Errorf("picture: %w: %s of %d×%d pixels takes %d steps to decode (%s), want at most %d: save it as a baseline JPEG, or smaller",
			ErrLimit, h.format, h.w, h.h, h.work, h.why, int64(maxWork))
	}
	return nil
}

const pngMagic = "\x89PNG\r\n\x1a\n"

// Steps of decoding a PNG file: per compressed byte if its blocks contain only code tables;
// per decompressed byte, and per pixel.
const (
	stepsPNGByte  = 160
	stepsPNGRow   = 8
	stepsPNGPixel = 24
)

// examinePNG reads the first chunk, which together with the size of the file bounds the
// decoder's work.
func examinePNG(file []byte) (header, error) {
	const ihdr, depth, color, interlace, end = 12, 24, 25, 28, 33
	if len(file) < end || string(file[ihdr:ihdr+4]) != "IHDR" {
		return header{}, errors.New("png: the first chunk is not IHDR")
	}
	config, err := png.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return header{}, err
	}
	h := header{format: "png", w: config.Width, h: config.Height}
	if err := checkSize(h.w, h.h); err != nil {
		return h, err
	}
	samples, ok := map[byte]int64{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[file[color]]
	if !ok {
		return h, fmt.Errorf("png: color type %d", file[color])
	}
	pixels, bits := int64(h.w)*int64(h.h), samples*int64(file[depth])
	rows := pixels*bits/8 + 2*int64(h.h) // all passes, with less than two bytes per row for filter and padding
	held := int64(4)
	switch {
	case file[depth] == 16:
		held = 8
	case file[color] == 3:
		held = 1
	}
	h.memory = held*pixels + 2*(int64(h.w)*bits/8+2) + decoderBytes
	if file[interlace] != 0 {
		rows, h.memory = 2*rows, 2*h.memory
	}
	h.work = stepsPNGByte*int64(len(file)) + stepsPNGRow*rows + stepsPNGPixel*pixels
	h.why = fmt.Sprintf("%d bytes, %d of them decompressed", len(file), rows)
	return h, nil
}

// decoderBytes is the memory of a decoder besides the image.
const decoderBytes = 256 << 10

// Steps of decoding a JPEG file: per byte of codes, per block of 8×8 samples in one scan,
// and per block for the inverse transform.
const (
	stepsJPEGByte  = 60
	stepsJPEGVisit = 160
	stepsJPEGBlock = 400
)

// examineJPEG bounds the decoder's work: each start-of-scan marker anywhere in the file
// counts as a scan over all blocks of its components.
func examineJPEG(file []byte) (header, error) {
	d := newJPEG(file)
	if _, err := d.scan(); err != nil {
		return header{}, fmt.Errorf("jpeg: %w", err)
	}
	frame := d.frame
	h := header{format: "jpeg", w: frame.w, h: frame.h}
	if err := checkSize(h.w, h.h); err != nil {
		return h, err
	}
	visits, scans := int64(0), 0
	for at := nextScan(file, 0); at < len(file); at = nextScan(file, at) {
		if n := frame.visits(file[at:]); n > 0 {
			visits, scans = visits+n, scans+1
		}
	}
	const lines = 16 // bytes between planes and pixels, per column
	blocks := frame.allBlocks()
	h.memory = 64*blocks + lines*int64(h.w) + decoderBytes
	finished := visits // once per scan
	if frame.progressive {
		h.memory += 2 * 64 * blocks
		finished = blocks
	}
	h.work = stepsJPEGByte*int64(len(file)) + stepsJPEGVisit*visits + stepsJPEGBlock*finished + 10*int64(h.w)*int64(h.h)
	h.why = fmt.Sprintf("%d bytes, %d scans over %d blocks", len(file), scans, blocks)
	return h, nil
}

// nextScan returns the offset after the next start-of-scan marker, len(file) if there is
// none.
func nextScan(file []byte, at int) int {
	if i := bytes.Index(file[at:], []byte{0xff, markerSOS}); i >= 0 {
		return at + i + 2
	}
	return len(file)
}
