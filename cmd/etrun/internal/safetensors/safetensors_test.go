package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
)

func file(header, data string) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...)
}

func read(b []byte, limit int64) ([]*npy.Array, error) {
	return Read(bytes.NewReader(b), int64(len(b)), limit)
}

func TestRead(t *testing.T) {
	list, err := read(file(`{"__metadata__":{"format":"pt"},"b":{"dtype":"I16","shape":[2,1],"data_offsets":[4,8]},`+
		`"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"none":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}}`, "\x00\x00\x80\x3f\x01\x00\x02\x00"), 100)
	if err != nil || len(list) != 3 {
		t.Fatalf("got %v, %v", list, err)
	}
	for i, want := range []struct {
		name  string
		sizes []int
		data  string
	}{{"a", []int{}, "\x00\x00\x80\x3f"}, {"b", []int{2, 1}, "\x01\x00\x02\x00"}, {"none", []int{0}, ""}} {
		if a := list[i]; a.Name != want.name || !reflect.DeepEqual(a.Sizes, want.sizes) || string(a.Data) != want.data {
			t.Errorf("%d: got %+v, want %+v", i, a, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	one := func(entry string) []byte { return file(`{"a":`+entry+`}`, "12345678") }
	for _, c := range []struct {
		name string
		file []byte
		err  error
		text string
	}{
		{"nothing", nil, ErrFormat, "first bytes"},
		{"a long description", binary.LittleEndian.AppendUint64(nil, 1<<40), ErrFormat, "first bytes"},
		{"beyond the file", append(binary.LittleEndian.AppendUint64(nil, 4000), `{"`...), ErrFormat, "4000 bytes"},
		{"no JSON", file(`{"a"`, ""), ErrFormat, "unexpected end"},
		{"a type of others", one(`{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}`), ErrUnsupported, "F8_E4M3"},
		{"beyond the elements", one(`{"dtype":"F32","shape":[3],"data_offsets":[0,12]}`), ErrFormat, "bytes 0 to 12 of 8"},
		{"backwards", one(`{"dtype":"F32","shape":[1],"data_offsets":[8,4]}`), ErrFormat, "bytes 8 to 4"},
		{"below the begin", one(`{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}`), ErrFormat, "bytes -4"},
		{"other size", one(`{"dtype":"F32","shape":[1],"data_offsets":[0,8]}`), ErrFormat, "bytes 0 to 8"},
		{"negative size", one(`{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}`), ErrFormat, "size -1"},
		{"overflow", one(`{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}`), ErrFormat, ""},
		{"three offsets", one(`{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}`), ErrFormat, "3 offsets"},
		{"above the limit", one(`{"dtype":"U8","shape":[8],"data_offsets":[0,8]}`), npy.ErrLimit, "8 bytes"},
	} {
		if _, err := read(c.file, 7); !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", c.name, err, c.err, c.text)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(`{"b":{"dtype":"I16","shape":[2,1],"data_offsets":[4,8]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, "12345678"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := read(b, 1<<16)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) && !errors.Is(err, npy.ErrLimit) {
				t.Fatal(err)
			}
			return
		}
		sum := 0
		for _, a := range list {
			n := a.DType.Size()
			for _, s := range a.Sizes {
				n *= s
			}
			if sum += n; n != len(a.Data) || sum > 1<<16 {
				t.Fatalf("%q: %d bytes for %v", a.Name, len(a.Data), a.Sizes)
			}
		}
	})
}
