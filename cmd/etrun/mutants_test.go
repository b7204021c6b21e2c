package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
)

// one picks a random element of a list.
func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// mutateBytes changes a few bytes, and sometimes truncates the file.
func mutateBytes(r *rand.Rand, b []byte) []byte {
	b = bytes.Clone(b)
	for range one(r, 0, 0, 0, 1, 2, 4) {
		if len(b) > 0 {
			b[r.IntN(len(b))] = one(r, 0, 0xff, 0x80, byte(r.Uint32()))
		}
	}
	if r.IntN(12) == 0 {
		b = b[:r.IntN(len(b)+1)]
	}
	return b
}

// mutateArray returns a .npy file with a random header.
func mutateArray(r *rand.Rand) []byte {
	number := func() string {
		return one(r, "0", "1", "8", "8", "-1", "64", "65", "4294967296", "9223372036854775807", "18446744073709551616", "1e3", "None", "08", "1048576")
	}
	shape := one(r, "(1, 1, 8, 8)", "(1, 1, 8, 8)", "(64,)", "()")
	if r.IntN(4) == 0 {
		var dims []string
		for range r.IntN(9) {
			dims = append(dims, number())
		}
		shape = "(" + strings.Join(dims, ", ") + one(r, ")", ",)", "", "))")
	}
	descr := one(r, "<f4", "<f4", "<f4", "<f4", "<f4", "<f4", "<f4", "<f4", "<f4", "<f4", "<f4", "<f4", ">f4", "<f8", "|b1", "<i8", "|u1", "<f2", "<c16", "|V2", "<U5", "|O", "<f3", "=f4", "[('a', '<f4')]")
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, one(r, "False", "False", "False", "False", "True", "1"), shape)
	for r.IntN(10) == 0 {
		i := r.IntN(len(header))
		header = header[:i] + one(r, "'", "{", "}", "(", " ", "\x00", "ß", ",") + header[i:]
	}
	b := []byte("\x93NUMPY\x01\x00")
	if version := one[byte](r, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4); version > 1 {
		b[6] = version
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)+1))
	} else {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)+1))
	}
	b = append(append(b, header...), '\n')
	b = append(b, make([]byte, one(r, 256, 256, 256, 256, 256, 256, 512, 64, 0, 255, r.IntN(1<<16)))...)
	return mutateBytes(r, b)
}

// mutateArchive returns a .npz file of such arrays with a random directory.
func mutateArchive(r *rand.Rand) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := range 1 + r.IntN(3) {
		h := &zip.FileHeader{Name: one(r, "arr_0.npy", "arr_0", fmt.Sprintf("arr_%d.npy", i), "../x.npy", "", "out0.npy"), Method: one(r, zip.Store, zip.Deflate)}
		w, err := z.CreateHeader(h)
		if err != nil {
			continue
		}
		data := mutateArray(r)
		if r.IntN(20) == 0 { // large but compressible
			data = append(data, make([]byte, 1<<(16+r.IntN(8)))...)
		}
		w.Write(data)
	}
	z.Close()
	b := out.Bytes()
	for range one(r, 0, 0, 1, 2) { // the directory is at the end
		if n := min(len(b), 300); n > 4 {
			at := len(b) - n + r.IntN(n-4)
			binary.LittleEndian.PutUint32(b[at:], one(r, 0, 1, 0xffffffff, 0x7fffffff, 1<<24, r.Uint32()))
		}
	}
	return mutateBytes(r, b)
}

// mutatePicture changes the headers of images, and corrects their checksums.
func mutatePicture(r *rand.Rand, b []byte) []byte {
	if r.IntN(5) == 0 {
		return mutateBytes(r, b)
	}
	if bytes.HasPrefix(b, []byte("\x89PNG")) {
		return mutatePNG(r, b)
	}
	return mutateJPEG(r, b)
}

// mutatePNG changes chunks: sizes and kinds of the first, order, number and bytes.
func mutatePNG(r *rand.Rand, b []byte) []byte {
	var chunks [][]byte // type and data
	for rest := b[8:]; len(rest) >= 12; {
		n := int(binary.BigEndian.Uint32(rest))
		if n > len(rest)-12 {
			break
		}
		chunks = append(chunks, bytes.Clone(rest[4:8+n]))
		rest = rest[12+n:]
	}
	for range 1 + r.IntN(3) {
		i := r.IntN(len(chunks))
		if len(chunks[0]) < 17 {
			break
		}
		switch c := chunks[i]; r.IntN(5) {
		case 0:
			binary.BigEndian.PutUint32(chunks[0][4+4*r.IntN(2):], one(r, 0, 1, 7, 1<<12, 1<<16, 1<<20, 1<<31-1, 1<<31, r.Uint32()))
		case 1:
			chunks[0][12+r.IntN(5)] = one[byte](r, 0, 1, 2, 3, 4, 6, 8, 16, byte(r.Uint32()))
		case 2:
			chunks = slices.Insert(chunks, r.IntN(len(chunks)+1), c)
		case 3:
			chunks = append([][]byte{chunks[0]}, slices.Delete(chunks[1:], max(0, i-1), min(max(1, i), len(chunks)-1))...)
		default:
			if len(c) > 4 {
				c[4+r.IntN(len(c)-4)] = byte(r.Uint32())
			}
		}
	}
	out := bytes.Clone(b[:8])
	for _, c := range chunks {
		out = binary.BigEndian.AppendUint32(out, uint32(len(c)-4))
		out = append(out, c...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(c))
	}
	return out
}

// mutateJPEG changes segments: sizes and components of frames, tables, and the number of scans.
func mutateJPEG(r *rand.Rand, b []byte) []byte {
	segments := segmentsOf(b)
	for range 1 + r.IntN(3) {
		i := r.IntN(len(segments))
		s := bytes.Clone(segments[i])
		segments[i] = s
		switch {
		case len(s) > 9 && s[1] >= 0xc0 && s[1] <= 0xc2:
			switch r.IntN(4) {
			case 0:
				binary.BigEndian.PutUint16(s[5+2*r.IntN(2):], one(r, 0, 1, 8, 1<<12, 1<<15, 1<<16-1, uint16(r.Uint32())))
			case 1:
				s[1] = 0xc0 + byte(r.IntN(3))
			default:
				s[4+r.IntN(len(s)-4)] = one[byte](r, 0, 1, 0x11, 0x22, 0x41, 0x44, byte(r.Uint32()))
			}
		case len(s) > 4 && r.IntN(2) == 0:
			s[2+r.IntN(len(s)-2)] = byte(r.Uint32())
		case s[1] == 0xda:
			segments = slices.Insert(segments, i, slices.Repeat([][]byte{s}, one(r, 1, 3, 40))...)
		default:
			segments = slices.Insert(segments, r.IntN(len(segments)), s)
		}
	}
	return slices.Concat(segments...)
}

// segmentsOf splits an image at its markers; a scan includes its data.
func segmentsOf(b []byte) (list [][]byte) {
	from := 0
	for i := 2; i+1 < len(b); i++ {
		if b[i] == 0xff && b[i+1] >= 0xc0 && b[i+1] != 0xff && (b[i+1] < 0xd0 || b[i+1] > 0xd7) {
			list = append(list, b[from:i])
			from = i
		}
	}
	return append(list, b[from:])
}
