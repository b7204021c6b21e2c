package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/internal/cputime"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bomb is a JPEG file with many cheap scans.
type bomb struct {
	w, h     int
	sampling []byte // of each component, in the form of the file
	frame    byte   // marker
	kind     string // of the scans
	scans    int
	restart  int // MCUs between two restart markers
}

func (b bomb) String() string {
	return fmt.Sprintf("%s of %d×%d, %x, frame %x, %d scans, restart %d", b.kind, b.w, b.h, b.sampling, b.frame, b.scans, b.restart)
}

// segment returns a marker with its contents.
func segment(marker byte, contents ...byte) []byte {
	out := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(contents)+2))
	return append(out, contents...)
}

// scanKinds are scans of the first component, or of all: the range of coefficients, the
// approximation, and the number of bits per block.
var scanKinds = map[string]struct {
	all        bool
	parameters [3]byte
	bits       func(block int) string
}{
	"coefficients": {false, [3]byte{1, 63, 0}, endOfBand},
	"refinements":  {false, [3]byte{1, 63, 0x10}, endOfBand},
	"averages":     {true, [3]byte{0, 0, 0}, func(int) string { return "0" }},
	"average bits": {true, [3]byte{0, 0, 0x10}, func(int) string { return "1" }},
	"nothing":      {false, [3]byte{1, 63, 0}, nil},
	"sequential":   {true, [3]byte{0, 63, 0}, func(int) string { return "00" }},
	"dense":        {true, [3]byte{0, 63, 0}, func(int) string { return "0" + strings.Repeat("101", 63) }},
}

// endOfBand is the longest run of blocks without coefficients: code 0 and 14 bits.
func endOfBand(block int) string {
	if block%32767 == 0 {
		return "0" + strings.Repeat("1", 14)
	}
	return ""
}

// build returns the file. The code of DC coefficients is 0 for no difference; those of the
// other coefficients are 0 for a run of empty blocks, or the end of a block, and 10 for a
// coefficient of one bit.
func (b bomb) build() []byte {
	kind := scanKinds[b.kind]
	out := append([]byte{0xff, 0xd8}, segment(0xee, []byte("Adobe\x00\x00\x00\x00\x00\x00\x00")...)...)
	out = append(out, segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)...)
	out = append(out, segment(b.frame, b.frameBytes()...)...)
	out = append(out, segment(0xc4, append([]byte{0x00, 1}, make([]byte, 16)...)...)...)
	first := byte(0xe0)
	if b.frame != 0xc2 {
		first = 0 // the end of a block
	}
	out = append(out, segment(0xc4, append([]byte{0x10, 1, 1}, append(make([]byte, 14), first, 0x01)...)...)...)
	if b.restart > 0 {
		out = append(out, segment(0xdd, byte(b.restart>>8), byte(b.restart))...)
	}
	f, err := readFrame(b.frameBytes())
	if err != nil {
		panic(err)
	}
	all := f.components
	part := all[:1]
	if kind.all {
		part = all
	}
	scan := b.scan(f, b.kind, part)
	for range b.scans {
		out = append(out, scan...)
	}
	if b.frame == 0xc2 { // a complete file
		out = append(out, b.scan(f, "averages", all)...)
		for i := range all {
			out = append(out, b.scan(f, "coefficients", all[i:i+1])...)
		}
	}
	return append(out, 0xff, 0xd9)
}

// scan returns a scan of components.
func (b bomb) scan(f *jpegFrame, kind string, components []*jpegComponent) []byte {
	k := scanKinds[kind]
	head := []byte{byte(len(components))}
	for _, c := range components {
		head = append(head, c.id, 0)
	}
	head = segment(0xda, append(head, k.parameters[:]...)...)
	if k.bits == nil {
		return head
	}
	mcus, perMCU := f.mcusX*f.mcusY, 0
	for _, c := range components {
		perMCU += c.across * c.down
	}
	if len(components) == 1 {
		mcus, perMCU = ceilDiv(components[0].plane.w, 8)*ceilDiv(components[0].plane.h, 8), 1
	}
	w := bitWriter{stuff: true}
	block := 0
	for mcu := range mcus {
		if b.restart > 0 && mcu > 0 && mcu%b.restart == 0 {
			w.flush()
			w.out = append(w.out, 0xff, 0xd0+byte((mcu/b.restart-1)%8))
			block = 0
		}
		for range perMCU {
			w.write(k.bits(block))
			block++
		}
	}
	w.flush()
	return append(head, w.out...)
}

func (b bomb) frameBytes() []byte {
	size := []byte{8, byte(b.h >> 8), byte(b.h), byte(b.w >> 8), byte(b.w), byte(len(b.sampling))}
	for i, s := range b.sampling {
		size = append(size, byte(i+1), s, 0)
	}
	return size
}

// bitWriter packs codes.
type bitWriter struct {
	stuff bool // append a zero byte to each 0xff
	out   []byte
	value byte
	have  int
}

func (w *bitWriter) write(bits string) {
	for _, bit := range bits {
		w.value = w.value<<1 | byte(bit-'0')
		if w.have++; w.have == 8 {
			w.out = append(w.out, w.value)
			if w.stuff && w.value == 0xff {
				w.out = append(w.out, 0)
			}
			w.have, w.value = 0, 0
		}
	}
}

// flush fills the last byte with ones, as the format requires.
func (w *bitWriter) flush() {
	for w.have > 0 {
		w.write("1")
	}
}

func bombs() (list []bomb) {
	form := 0
	for _, size := range [][2]int{{1, 1}, {640, 480}, {15, 9000}, {20000, 50}} {
		for _, sampling := range [][]byte{{0x11}, {0x11, 0x11, 0x11}, {0x22, 0x11, 0x11}, {0x42, 0x11, 0x11}, {0x22, 0x11, 0x11, 0x22}} {
			form++
			for number, kind := range slices.Sorted(maps.Keys(scanKinds)) {
				k := scanKinds[kind]
				frame := byte(0xc2)
				if k.parameters == [3]byte{0, 63, 0} {
					frame = 0xc0
				}
				for i, restart := range []int{0, 1, 100} {
					if cases.Every(6, form+number+i) {
						list = append(list, bomb{size[0], size[1], sampling, frame, kind, 3, restart})
					}
				}
			}
		}
	}
	return list
}

// measure decodes an accepted file and compares the time with the estimate: steps of a
// nanosecond, on a slow machine several.
func measure(t *testing.T, name fmt.Stringer, file []byte, h header) {
	slowness() // before anything is measured
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took, err := timed(file)
	runtime.ReadMemStats(&after)
	most := time.Duration(4*slowness()*float64(h.work)) + 20*time.Millisecond
	for tries := 0; took > most && tries < 4; tries++ { // a virtual processor's time includes what its host does
		took, _ = timed(file)
	}
	if took > most {
		t.Errorf("%v: %v to decode, %d steps (%s) were estimated (%v)", name, took, h.work, h.why, err)
	}
	// Errors that the decoder allocates at markers and drops are extra.
	if taken := int64(after.TotalAlloc - before.TotalAlloc); taken > h.memory+h.memory/8+32*int64(len(file)) {
		t.Errorf("%v: %d bytes to decode, %d were estimated (%v)", name, taken, h.memory, err)
	}
}

// timed returns the time of the thread that decodes a file.
func timed(file []byte) (took time.Duration, err error) {
	begun := cputime.Thread()
	_, err = formatOf(file).decode(file, func() error { return nil })
	return cputime.Thread() - begun, err
}

// slowness is the time of a step of an ordinary image on this machine in nanoseconds, at least
// one: emulators and the race detector need more.
var slowness = sync.OnceValue(func() float64 {
	file := bomb{640, 480, []byte{0x22, 0x11, 0x11}, 0xc0, "dense", 3, 0}.build()
	h, err := examine(file)
	if err != nil {
		panic(err)
	}
	least := time.Duration(math.MaxInt64)
	for range 3 {
		runtime.LockOSThread()
		took, err := timed(file)
		if err != nil {
			panic(err)
		}
		least = min(least, took)
		runtime.UnlockOSThread()
	}
	return max(1, float64(least)/float64(h.work))
})

func (b pngBomb) String() string {
	return fmt.Sprintf("png of %d×%d, depth %d, color %d, interlace %d, filter %d, %d empty blocks, %d rows more, transparent %v",
		b.w, b.h, b.depth, b.color, b.interlace, b.filter, 4*b.blocks, b.more, b.transparentColor)
}

// Decoding an accepted image takes no longer than estimated, and small images are accepted.
func TestEstimatesAreUpperBounds(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates and takes time of its own")
	}
	files := 0
	check := func(name fmt.Stringer, file []byte) {
		files++
		h, err := examine(file)
		if err != nil {
			t.Errorf("%v: %v", name, err)
			return
		}
		measure(t, name, file, h)
	}
	for _, b := range bombs() {
		check(b, b.build())
	}
	for _, b := range pngBombs() {
		check(b, b.build())
	}
	if files < cases.Of(60, 300) {
		t.Errorf("%d files", files)
	}
}

// Too expensive images are rejected immediately, with the figures.
func TestBombsAreRefused(t *testing.T) {
	gray, full, half := []byte{0x11}, []byte{0x11, 0x11, 0x11}, []byte{0x22, 0x11, 0x11}
	for _, c := range []struct {
		file []byte
		text string
	}{
		{file: bomb{8192, 8192, gray, 0xc2, "coefficients", 2500, 0}.build(), text: "2502 scans over 1048576 blocks"},
		{file: bomb{8192, 8192, gray, 0xc2, "refinements", 1000, 0}.build(), text: "1002 scans over 1048576 blocks"},
		{file: bomb{2000, 2000, half, 0xc2, "coefficients", 3000, 0}.build(), text: "3004 scans"},
		{file: bomb{64, 64, gray, 0xc2, "coefficients", 1_000_000, 0}.build(), text: "1000002 scans"},
		{file: bomb{1024, 1024, full, 0xc0, "sequential", 2000, 0}.build(), text: "2000 scans"},
		{file: bomb{1024, 1024, full, 0xc2, "averages", 3000, 64}.build(), text: "3004 scans"},
		{file: bomb{65535, 65535, gray, 0xc2, "nothing", 1, 0}.build(), text: "65535×65535 pixels"},
		{file: pngBomb{w: 10, h: 10, depth: 8, color: 2, blocks: 2_000_000}.build(), text: "bytes, "},
		{file: pngBomb{w: 1, h: 1, depth: 8, color: 2}.resized(1<<14, 1<<13), text: "16384×8192 pixels"},
	} {
		begun := cputime.Process()
		got, _, err := tensorOf(t.Context(), c.file, Recipe{}, Want{DType: tensor.Float32, Sizes: []int{1, 3, 8, 8}, Limit: 1 << 40})
		took := cputime.Process() - begun
		if got != nil || !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v and %v", c.text, got, err)
		}
		if took > time.Second/2 {
			t.Errorf("%s: refused after %v", c.text, took)
		}
	}
}

// resized returns the file with other sizes in its header.
func (b pngBomb) resized(w, h uint32) []byte {
	file := b.build()
	binary.BigEndian.PutUint32(file[16:], w)
	binary.BigEndian.PutUint32(file[20:], h)
	binary.BigEndian.PutUint32(file[29:], crc32.ChecksumIEEE(file[12:29]))
	return file
}

// Memory is compared with the limit before decoding.
func TestMemoryLimit(t *testing.T) {
	big := bomb{4096, 4096, []byte{0x22, 0x11, 0x11}, 0xc2, "averages", 1, 0}.build()
	for name, c := range map[string]struct {
		file   []byte
		recipe Recipe
		limit  int64
		text   string
	}{
		"pixels and coefficients": {big, Recipe{}, 64 << 20, "4096×4096 pixels takes 75825152 bytes"},
		"a tall row between":      {pngBomb{w: 1, h: 1 << 20, depth: 8}.build(), Recipe{Height: 8, Width: 1 << 15}, 1 << 40, "at most 67108864 in between"},
		"the size of the recipe":  {pngBomb{w: 100, h: 100, depth: 8}.build(), Recipe{Height: 8192, Width: 8192}, 64 << 20, "to resize to 8192×8192"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := tensorOf(t.Context(), c.file, c.recipe, Want{DType: tensor.Float32, Sizes: []int{1, 3, 8, 8}, Limit: c.limit})
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrLimit) || !strings.Contains(fmt.Sprint(err), c.text) || taken > 1<<20 {
			t.Errorf("%s: %v, after %d bytes", name, err, taken)
		}
	}
}

// The estimate is an upper bound of the memory for the tensor.
func TestTensorMemoryIsAnUpperBound(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates and takes time of its own")
	}
	for _, c := range []struct {
		file   []byte
		recipe Recipe
		sizes  []int
	}{
		{pngBomb{w: 900, h: 700, depth: 8, color: 2}.build(), Recipe{Short: 300}, []int{1, 3, 224, 224}},
		{pngBomb{w: 900, h: 700, depth: 16, color: 6}.build(), Recipe{}, []int{1, 1, 1000, 2000}},
		{pngBomb{w: 50, h: 40000, depth: 1}.build(), Recipe{Height: 30000, Width: 100}, []int{1, 20000, 64, 3}},
		{bomb{1500, 900, []byte{0x22, 0x11, 0x11}, 0xc2, "averages", 1, 0}.build(), Recipe{Short: 20}, []int{16, 16}},
	} {
		want := Want{DType: tensor.Float32, Sizes: c.sizes, Limit: 1 << 40}
		h, err := examine(c.file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := frameOf(want, Auto)
		if err != nil {
			t.Fatal(err)
		}
		way, err := c.recipe.plan(h, f, want)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err = tensorOf(t.Context(), c.file, c.recipe, want)
		runtime.ReadMemStats(&after)
		estimated := h.memory + way.memory()
		if taken := int64(after.TotalAlloc - before.TotalAlloc); err != nil || taken > estimated+estimated/16 {
			t.Errorf("%v: %d bytes, estimated were %d (%v)", way.String(), taken, estimated, err)
		}
	}
}

// Canceling the context ends decoding.
func TestContextEndsDecoding(t *testing.T) {
	file := bomb{4096, 4096, []byte{0x22, 0x11, 0x11}, 0xc2, "averages", 5, 0}.build()
	gone := errors.New("the user has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(30*time.Millisecond, func() { cancel(gone) })
	before, begun := runtime.NumGoroutine(), time.Now()
	got, _, err := tensorOf(ctx, file, Recipe{}, Want{DType: tensor.Float32, Sizes: []int{1, 3, 8, 8}, Limit: 1 << 40})
	if took := time.Since(begun); got != nil || !errors.Is(err, gone) || took > 10*time.Second {
		t.Errorf("got %v and %v after %v", got, err, took)
	}
	await.True(t, "the decoder ends at its next read", func() bool { return runtime.NumGoroutine() <= before })
}

// FuzzExamine requires that decoding every accepted image takes no longer than estimated.
func FuzzExamine(f *testing.F) {
	for _, name := range []string{"noise.png", "palette.png", "smooth.jpg", "gray.png", "alpha.png", "others/lossy_alpha.webp",
		"others/lossless.webp", "others/transparent.gif", "others/animated.gif"} {
		f.Add(read(f, name))
	}
	for kind := range scanKinds {
		f.Add(bomb{40, 30, []byte{0x22, 0x11, 0x11}, 0xc2, kind, 2, 4}.build())
	}
	f.Add(pngBomb{w: 9, h: 9, depth: 16, color: 6, interlace: 1, blocks: 3}.build())
	f.Fuzz(func(t *testing.T, file []byte) {
		h, err := examine(file)
		if err != nil || h.work > 1e9 || h.memory > 1<<28 {
			return
		}
		measure(t, quoted(file[:min(len(file), 40)]), file, h)
	})
}

// quoted names a file by its first bytes.
type quoted []byte

func (q quoted) String() string { return fmt.Sprintf("%q", []byte(q)) }
