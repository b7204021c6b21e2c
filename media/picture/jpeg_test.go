package picture

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/exif"
)

// jpegFiles are the files of testdata/jpeg, without their extension.
func jpegFiles(t testing.TB) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "jpeg", "*.jpg"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".jpg"))
	}
	return names
}

// Every form of file has the bytes that Pillow has of it.
func TestJPEGEqualsPillow(t *testing.T) {
	for _, name := range jpegFiles(t) {
		path := filepath.Join("jpeg", name)
		compare(t, decoded(t, path+".jpg", 3).Data, path+".bin", 0)
	}
}

// Gray pictures are made of colors, like Pillow does.
func TestJPEGToGray(t *testing.T) {
	for _, name := range jpegFiles(t) {
		colors := read(t, filepath.Join("jpeg", name+".bin"))
		for i, v := range decoded(t, filepath.Join("jpeg", name+".jpg"), 1).Data {
			if want := gray(colors[3*i], colors[3*i+1], colors[3*i+2]); v != want {
				t.Fatalf("%s: pixel %d: got %d, want %d", name, i, v, want)
			}
		}
	}
}

// A file that is cut off anywhere is rejected.
func TestJPEGCutOff(t *testing.T) {
	for _, name := range jpegFiles(t) {
		file := read(t, filepath.Join("jpeg", name+".jpg"))
		for n := 2; n < len(file)-1; n++ {
			if _, err := decode(t.Context(), file[:n:n], 3, exif.Upright); err == nil {
				t.Errorf("%s: no error with %d of %d bytes", name, n, len(file))
			}
			if _, err := examine(file[:n:n]); err == nil && !bytes.Contains(file[:n], []byte{0xff, markerSOS}) {
				t.Errorf("%s: no error in the header of %d bytes", name, n)
			}
		}
	}
}

func TestJPEGRefuses(t *testing.T) {
	file := read(t, "jpeg/420.jpg")
	frame := bytes.Index(file, []byte{0xff, 0xc0})
	scan := bytes.Index(file, []byte{0xff, markerSOS})
	changed := func(at int, b ...byte) []byte {
		out := bytes.Clone(file)
		copy(out[at:], b)
		return out
	}
	progressive := read(t, "jpeg/progressive.jpg")
	last := bytes.LastIndex(progressive, []byte{0xff, markerSOS})
	for _, c := range []struct {
		name        string
		file        []byte
		unsupported bool
		text        string
	}{
		{"arithmetic codes", changed(frame+1, 0xc9), true, "arithmetic coding"},
		{"lossless", changed(frame+1, 0xc3), true, "lossless JPEG: save the picture as a baseline"},
		{"12 bits", changed(frame+4, 12), true, "JPEG of 12 bits"},
		{"height in a later segment", changed(frame+5, 0, 0), true, "size of 19×0 pixels"},
		{"two for three", changed(frame+11, 0x31, 0, 2, 0x21), true, "2×1 blocks beside 3×1"},
		{"five for one", changed(frame+11, 0x51), false, "component 1 of 5×1 blocks"},
		{"equal components", changed(frame+10, 7, 0x22, 0, 7), false, "component 7 of"},
		{"another frame", append(bytes.Clone(file[:scan]), file[frame:]...), false, "a second frame"},
		{"a scan without a frame", append(bytes.Clone(file[:frame]), file[scan:]...), false, "no frame before the first scan"},
		{"no scan", append(bytes.Clone(file[:scan]), 0xff, markerEOI), false, "no scan"},
		{"an unknown component", changed(scan+5, 9), false, "component 9 with tables"},
		{"a component twice", changed(scan+5, 1, 0, 1), false, "component 1 twice"},
		{"no such Huffman table", changed(scan+6, 0x22), false, "an unknown code"},
		{"no such quantization", changed(frame+12, 3), false, "no quantization table"},
		{"a marker among the codes", changed(scan+20, 0xff, 0xd3), false, "a scan ends early"},
		{"without the last bits", append(bytes.Clone(progressive[:last]), 0xff, markerEOI), false, "the last scans are missing"},
		{"unknown progression", bytes.Replace(progressive, []byte{0x3f, 0x02}, []byte{0x40, 0x02}, 1), false, "progression"},
	} {
		_, err := decode(t.Context(), c.file, 3, exif.Upright)
		_, unsupported := errors.AsType[*UnsupportedError](err)
		if err == nil || unsupported != c.unsupported || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.text)
		}
	}
}

// Tables and frames that no file needs are rejected, too.
func TestJPEGTables(t *testing.T) {
	codes := func(counts ...byte) []byte {
		return append(append([]byte{0}, counts...), make([]byte, 16+300-len(counts))...)
	}
	for _, c := range []struct {
		name   string
		marker byte
		b      []byte
		want   error
	}{
		{"three codes of a bit", markerDHT, codes(3), errCodes},
		{"more symbols than bytes", markerDHT, codes(0, 0, 0, 0, 0, 0, 0, 0, 255, 2), errLength},
		{"a fifth table", markerDHT, append([]byte{4}, make([]byte, 16)...), errLength},
		{"half a table", markerDHT, make([]byte, 10), errLength},
		{"24 bits", markerDQT, append([]byte{0x20}, make([]byte, 192)...), errLength},
		{"half a table of factors", markerDQT, make([]byte, 64), errLength},
		{"an interval of one byte", markerDRI, make([]byte, 1), errLength},
		{"half a frame", markerSOF2, make([]byte, 5), errLength},
		{"one code of a bit", markerDHT, append([]byte{0, 1}, make([]byte, 16)...), nil},
	} {
		if err := newJPEG(nil).declare(c.marker, c.b); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

// FuzzJPEG requires an end without a panic, for any file, and pixels of the declared size.
func FuzzJPEG(f *testing.F) {
	for _, name := range jpegFiles(f) {
		f.Add(read(f, filepath.Join("jpeg", name+".jpg")))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		file = append([]byte("\xff\xd8"), file...)
		h, err := examine(file)
		if err != nil || h.work > 1e8 || h.memory > 1<<26 {
			return
		}
		p, err := decode(t.Context(), file, 3, exif.Upright)
		if err == nil && (p.W != h.w || p.H != h.h || len(p.Data) != 3*h.w*h.h) {
			t.Errorf("%d×%d pixels, %d bytes, want %d×%d", p.W, p.H, len(p.Data), h.w, h.h)
		}
	})
}
