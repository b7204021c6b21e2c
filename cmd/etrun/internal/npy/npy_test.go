package npy

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// file returns a version 1 file with a header and elements.
func file(header string, data ...byte) []byte {
	b := append([]byte(magic), 1, 0, byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), data...)
}

func TestRead(t *testing.T) {
	cases := []struct {
		name  string
		file  []byte
		dtype string
		sizes []int
		data  []byte
	}{
		{"little-endian", file("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n", 1, 2, 3, 4), "int16", []int{2}, []byte{1, 2, 3, 4}},
		{"big-endian", file("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", 1, 2, 3, 4), "int16", []int{2}, []byte{2, 1, 4, 3}},
		{"big-endian complex", file("{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", 1, 2, 3, 4, 5, 6, 7, 8), "complex64", []int{1}, []byte{4, 3, 2, 1, 8, 7, 6, 5}},
		{"no order mark", file("{'descr': 'b1', 'fortran_order': False, 'shape': ()}", 1), "bool", []int{}, []byte{1}},
		{"fortran", file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", 0, 3, 1, 4, 2, 5), "uint8", []int{2, 3}, []byte{0, 1, 2, 3, 4, 5}},
		{"fortran and big-endian", file("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 2), }", 0, 1, 0, 3, 0, 2, 0, 4), "uint16", []int{2, 2}, []byte{1, 0, 2, 0, 3, 0, 4, 0}},
		{"keys in another order, double quotes, Python 2 integers", file(`{"shape": (2L, 1L), "fortran_order": False, "descr": "<f2"}`, 1, 2, 3, 4), "float16", []int{2, 1}, []byte{1, 2, 3, 4}},
		{"no elements", file("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }"), "float64", []int{0, 5}, nil},
		{"raw elements", file("{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }", 7, 8), "raw 2-byte elements", []int{1}, []byte{7, 8}},
	}
	for _, c := range cases {
		a, err := Read(bytes.NewReader(c.file), UnknownSize, 1<<10)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if a.TypeName() != c.dtype || !slices.Equal(a.Sizes, c.sizes) || !bytes.Equal(a.Data, c.data) {
			t.Errorf("%s: got %s%v %v, want %s%v %v", c.name, a.TypeName(), a.Sizes, a.Data, c.dtype, c.sizes, c.data)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	const rest = ", 'fortran_order': False, 'shape': (2,), }"
	huge := file("{'descr': '<f8', 'fortran_order': False, 'shape': (100000000,), }")
	cases := []struct {
		name string
		file []byte
		want error
		text string
	}{
		{"empty", nil, ErrFormat, "first 8 bytes"},
		{"other magic", []byte("\x93NUMPX\x01\x00\x00\x00"), ErrFormat, "NUMPX"},
		{"version 9", []byte(magic + "\x09\x00\x00\x00"), ErrUnsupported, "version 9.0"},
		{"header cut off", file("{'descr'")[:14], ErrFormat, "header of 8 bytes"},
		{"header too long", []byte(magic + "\x02\x00\xff\xff\xff\xff"), ErrFormat, "at most 65536"},
		{"elements cut off", file("{'descr': '<i2'"+rest, 1, 2), ErrFormat, "2 of 4 bytes"},
		{"too large for the limit", huge, ErrLimit, "at most 1024"},
		{"product overflows", file("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }"), ErrFormat, "too large"},
		{"Python objects", file("{'descr': '|O'" + rest), ErrUnsupported, "|O"},
		{"text", file("{'descr': '<U4'" + rest), ErrUnsupported, "<U4"},
		{"raw elements of no type's width", file("{'descr': '|V3'" + rest), ErrUnsupported, "|V3"},
		{"structured", file("{'descr': [('x', '<f4')]" + rest), ErrUnsupported, "structured"},
		{"negative size", file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), ErrFormat, "size"},
		{"key twice", file("{'descr': '<f4', 'descr': '<f4'" + rest), ErrFormat, "duplicate key"},
		{"key unknown", file("{'descr': '<f4', 'order': 1" + rest), ErrFormat, `"order"`},
		{"key absent", file("{'descr': '<f4', 'shape': (2,), }"), ErrFormat, "2 keys, want"},
		{"rank 17", file("{'descr': '<f4', 'fortran_order': False, 'shape': (" + strings.Repeat("1,", 17) + "), }"), ErrFormat, "rank above 16"},
		{"something after", file("{'descr': '<f4'" + rest + " {}"), ErrFormat, "after the dictionary"},
		{"no dictionary", file("[]"), ErrFormat, "want"},
	}
	for _, c := range cases {
		a, err := Read(bytes.NewReader(c.file), UnknownSize, 1<<10)
		if a != nil || !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%s: got %v and %v, want %v with %q", c.name, a, err, c.want, c.text)
		}
	}
}

func TestWriteReadsBack(t *testing.T) {
	channelsLast := tensor.Make(tensor.Int8, []int{1, 2, 2, 1}, []uint8{0, 2, 3, 1}, tensor.Static)
	channelsLast.Bind([]byte{0, 2, 1, 3})
	half := tensor.Make(tensor.BFloat16, []int{3}, nil, tensor.Static)
	half.Bind(tensor.AlignedBytes(6))
	tensors := []*tensor.Tensor{tensor.Of([]float32{1, 2, 3, 4}, 2, 2), channelsLast, half, tensor.Of([]bool{true})}
	var buf bytes.Buffer
	zip := NewZipWriter(&buf)
	for i, x := range tensors {
		if err := zip.Add(string(rune('a'+i)), x); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	arrays, err := ReadZip(bytes.NewReader(buf.Bytes()), int64(buf.Len()), 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	if len(arrays) != len(tensors) {
		t.Fatalf("%d arrays, want %d", len(arrays), len(tensors))
	}
	for i, a := range arrays {
		if want := string(rune('a' + i)); a.Name != want || !a.HasType(tensors[i].DType) || !slices.Equal(a.Sizes, tensors[i].Sizes) {
			t.Errorf("array %d: got %q %s%v, want %q %v", i, a.Name, a.TypeName(), a.Sizes, want, tensors[i])
		}
	}
	if want := []byte{0, 1, 2, 3}; !bytes.Equal(arrays[1].Data, want) {
		t.Errorf("channels-last array: got %v, want logical order %v", arrays[1].Data, want)
	}
	if _, err := ReadZip(bytes.NewReader(buf.Bytes()), int64(buf.Len()), 20); !errors.Is(err, ErrLimit) {
		t.Errorf("archive of 27 bytes of elements with limit 20: %v, want %v", err, ErrLimit)
	}
}

// archiveOf returns an archive whose members have the given bytes.
func archiveOf(t *testing.T, method uint16, names []string, contents [][]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for i, name := range names {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = w.Write(contents[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// directory returns the offset of the i-th header in an archive's directory.
func directory(t *testing.T, archive []byte, i int) []byte {
	t.Helper()
	for at := range archive {
		if bytes.HasPrefix(archive[at:], []byte("PK\x01\x02")) {
			if i--; i < 0 {
				return archive[at:]
			}
		}
	}
	t.Fatal("no such header")
	return nil
}

func TestReadZipRefuses(t *testing.T) {
	le := binary.LittleEndian
	three := file("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", 1, 2, 3)
	bomb := append(file("{'descr': '|u1', 'fortran_order': False, 'shape': (1048576,), }"), make([]byte, 1<<20)...)
	huge := file("{'descr': '|u1', 'fortran_order': False, 'shape': (4000000,), }", 1, 2, 3)
	many := slices.Repeat([]string{"x.npy"}, maxMembers+1)
	cases := []struct {
		name string
		make func() []byte
		want error
		text string
	}{
		{"no archive", func() []byte { return []byte("hello") }, ErrFormat, "not a valid zip"},
		{"a member that is no array", func() []byte { return archiveOf(t, zip.Store, []string{"x.txt"}, [][]byte{three}) }, ErrUnsupported, "no .npy"},
		{"an archive in an archive", func() []byte { return archiveOf(t, zip.Store, []string{"x.npz"}, [][]byte{three}) }, ErrUnsupported, "no .npy"},
		{"more than the limit, compressed", func() []byte { return archiveOf(t, zip.Deflate, []string{"x.npy"}, [][]byte{bomb}) }, ErrLimit, "at most 524288"},
		{"a claim that no byte backs", func() []byte { return archiveOf(t, zip.Store, []string{"x.npy"}, [][]byte{huge}) }, ErrLimit, "at most"},
		{"too many members", func() []byte { return archiveOf(t, zip.Store, many, slices.Repeat([][]byte{three}, len(many))) }, ErrLimit, "4097 members"},
		{"a directory without end", func() []byte {
			names := []string{}
			for range 100 {
				names = append(names, strings.Repeat("x", 65000)+".npy")
			}
			return archiveOf(t, zip.Store, names, slices.Repeat([][]byte{three}, len(names)))
		}, ErrLimit, "a directory of more than"},
		{"bytes after the array", func() []byte { return archiveOf(t, zip.Store, []string{"x.npy"}, [][]byte{append(three, 4)}) }, ErrFormat, "after the array"},
		{"members that overlap", func() []byte {
			b := archiveOf(t, zip.Store, []string{"a.npy", "b.npy"}, [][]byte{three, three})
			le.PutUint32(directory(t, b, 1)[42:], 0) // the second member is where the first one is
			return b
		}, ErrFormat, "overlap"},
		{"a member behind the end", func() []byte {
			b := archiveOf(t, zip.Store, []string{"a.npy"}, [][]byte{three})
			le.PutUint32(directory(t, b, 0)[20:], 1<<30)
			return b
		}, ErrFormat, "at byte"},
		{"a member that grows when compressed", func() []byte {
			b := archiveOf(t, zip.Store, []string{"a.npy"}, [][]byte{bomb})
			le.PutUint32(directory(t, b, 0)[24:], 100)
			return b
		}, ErrFormat, "100 bytes, compressed to"},
		{"a wrong sum", func() []byte {
			b := archiveOf(t, zip.Store, []string{"a.npy"}, [][]byte{three})
			le.PutUint32(directory(t, b, 0)[16:], 1)
			return b
		}, ErrFormat, "wrong checksum"},
	}
	for _, c := range cases {
		b := c.make()
		arrays, err := ReadZip(bytes.NewReader(b), int64(len(b)), 1<<19)
		if arrays != nil || !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%s: got %d arrays and %v, want %v with %q", c.name, len(arrays), err, c.want, c.text)
		}
	}
}

// The declared size in a header is compared with the size of the file before allocation.
func TestReadComparesWithTheFile(t *testing.T) {
	claim := file("{'descr': '|u1', 'fortran_order': False, 'shape': (100000000,), }", 1, 2, 3)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Read(bytes.NewReader(claim), int64(len(claim)), 1<<30)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrFormat) || taken > 1<<20 {
		t.Errorf("%v, after %d bytes", err, taken)
	}
	sorted := file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", 1, 2, 3, 4, 5, 6)
	for limit, want := range map[int64]error{12: nil, 11: ErrLimit} {
		if _, err := Read(bytes.NewReader(sorted), int64(len(sorted)), limit); !errors.Is(err, want) {
			t.Errorf("6 bytes to sort, limit %d: %v, want %v", limit, err, want)
		}
	}
}

func TestHeaderIsAligned(t *testing.T) {
	for rank := range 8 {
		var buf bytes.Buffer
		sizes := make([]int, rank)
		if err := Write(&buf, tensor.New(tensor.Float32, sizes...)); err != nil {
			t.Fatal(err)
		}
		if rank > 0 && buf.Len()%64 != 0 {
			t.Errorf("rank %d: header of %d bytes is no multiple of 64", rank, buf.Len())
		}
		a, err := Read(&buf, UnknownSize, 1<<10)
		if err != nil || len(a.Sizes) != rank {
			t.Errorf("rank %d: got %v, %v", rank, a, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file("{'descr': '>c8', 'fortran_order': True, 'shape': (1, 1), }\n", 1, 2, 3, 4, 5, 6, 7, 8))
	f.Add(file("{'descr': '|V2', 'fortran_order': False, 'shape': (), }\n", 1, 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Read(bytes.NewReader(b), int64(len(b)), 1<<16)
		if (a == nil) == (err == nil) {
			t.Fatalf("array %v and error %v", a, err)
		}
		if err != nil || a.Void {
			return
		}
		readsBack(t, a)
	})
}

// readsBack writes a and reads it again.
func readsBack(t *testing.T, a *Array) {
	t.Helper()
	x := tensor.Make(a.DType, a.Sizes, nil, tensor.Static)
	x.Bind(a.Data)
	var buf bytes.Buffer
	if err := Write(&buf, x); err != nil {
		t.Fatal(err)
	}
	b, err := Read(&buf, UnknownSize, 1<<16)
	if err != nil || b.DType != a.DType || !slices.Equal(a.Sizes, b.Sizes) || !bytes.Equal(a.Data, b.Data) {
		t.Fatalf("%v read back as %v, %v", a, b, err)
	}
}

func FuzzReadZip(f *testing.F) {
	var buf bytes.Buffer
	zip := NewZipWriter(&buf)
	if err := errors.Join(zip.Add("x", tensor.New(tensor.Int8, 3)), zip.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		arrays, err := ReadZip(bytes.NewReader(b), int64(len(b)), 1<<16)
		if err != nil && arrays != nil {
			t.Fatalf("arrays %v and error %v", arrays, err)
		}
	})
}

func TestReadNAllocatesWhatArrives(t *testing.T) {
	const claimed = math.MaxInt / 2
	_, err := readN(io.LimitReader(zeros{}, 10), claimed, UnknownSize)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
