package fvp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/hal/ethosu/ethosutest"
	"github.com/etrun-go/etrun/hal/ethosu/fvp"
	"github.com/etrun-go/etrun/hal/ethosu/isa"
	"github.com/etrun-go/etrun/hal/ethosu/npu"
	"github.com/etrun-go/etrun/internal/needs"
)

var images = []string{"corstone-300.elf", "corstone-320.elf", "an547.elf"}

func prebuilt(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("firmware", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFirmwareChecksums compares the prebuilt images with the recorded checksums.
func TestFirmwareChecksums(t *testing.T) {
	sums := strings.Fields(string(prebuilt(t, "SHA256SUMS")))
	if len(sums) != 2*len(images) {
		t.Fatalf("SHA256SUMS has %d words, want %d", len(sums), 2*len(images))
	}
	for i, name := range images {
		sum := sha256.Sum256(prebuilt(t, name))
		if got := hex.EncodeToString(sum[:]); sums[2*i] != got || sums[2*i+1] != name {
			t.Errorf("%s has %s, SHA256SUMS %s for %s", name, got, sums[2*i], sums[2*i+1])
		}
	}
}

// OtherCompiler is the reason why the images are not rebuilt.
type OtherCompiler struct{ Got, Want string }

func (o OtherCompiler) Error() string {
	return "the images are of gcc " + o.Want + ", this machine has: " + o.Got
}

// TestFirmwareReproducible rebuilds the images, in two folders, and compares them with the prebuilt
// ones.
func TestFirmwareReproducible(t *testing.T) {
	gcc := needs.Tool(t, "arm-none-eabi-gcc", "gcc-arm-none-eabi")
	mk := needs.Tool(t, "make", "make")
	version, err := exec.Command(gcc, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(version), "\n")
	if want := compilerOf(t); !strings.HasSuffix(first, want) {
		t.Skip(OtherCompiler{first, want})
	}
	for _, folder := range []string{"a", "another folder/b"} {
		dir := filepath.Join(t.TempDir(), folder)
		if err := os.CopyFS(dir, os.DirFS("firmware")); err != nil {
			t.Fatal(err)
		}
		for _, name := range images {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command(mk, "-C", dir).CombinedOutput(); err != nil {
			t.Fatalf("make: %v\n%s", err, out)
		}
		for _, name := range images {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(got, prebuilt(t, name)) {
				t.Errorf("%s built in %q: %d bytes, not the prebuilt %d (%v)", name, folder, len(got), len(prebuilt(t, name)), err)
			}
		}
	}
}

// compilerOf reads the compiler of the prebuilt images from the Makefile.
func compilerOf(t *testing.T) string {
	for line := range strings.Lines(string(prebuilt(t, "Makefile"))) {
		if name, value, ok := strings.Cut(line, ":="); ok && strings.TrimSpace(name) == "COMPILER" {
			return strings.TrimSpace(value)
		}
	}
	t.Fatal("no COMPILER in the Makefile")
	return ""
}

// qemuArguments starts an image on QEMU's machine mps3-an547.
func qemuArguments(_, image string) []string {
	return []string{"-machine", "mps3-an547", "-display", "none", "-monitor", "none", "-serial", "none",
		"-semihosting-config", "enable=on,target=native", "-kernel", image}
}

// onQEMU starts the firmware on QEMU, with the NPU emulated by the host.
func onQEMU(t *testing.T, c isa.Config, answer func(folder string) error) *fvp.Model {
	t.Helper()
	qemu := needs.Tool(t, "qemu-system-arm", "qemu-system-arm")
	m, err := fvp.Answered(context.Background(), qemu, prebuilt(t, "an547.elf"), c, qemuArguments, answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// hostNPU emulates the NPU (firmware/npu_host.c): npu.req contains the configuration, the size of
// the stream, the sizes of the regions, and their bytes; npu.rsp a status, a detail, cycles, and
// the bytes of all regions but the first.
func hostNPU(status uint32) func(folder string) error {
	return func(folder string) error {
		b, err := os.ReadFile(filepath.Join(folder, "npu.req"))
		if err != nil {
			return err
		}
		var head [2 + isa.NumRegions]uint32
		r := bytes.NewReader(b)
		if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
			return err
		}
		take := func(n uint32) []byte {
			part := make([]byte, n)
			if _, e := io.ReadFull(r, part); e != nil {
				err = e
			}
			return part
		}
		stream := take(head[1])
		var mem npu.Memory
		for i, n := range head[2:] {
			if n > 0 {
				mem[i] = take(n)
			}
		}
		c, e := isa.ParseConfig(head[0], 0)
		if err = errors.Join(err, e); err != nil || r.Len() > 0 {
			return fmt.Errorf("npu.req: %d bytes left, %w", r.Len(), err)
		}
		if status == 0 {
			err = ethosutest.Execute(c, stream, &mem, 1)
		}
		out := binary.LittleEndian.AppendUint32(nil, status)
		out = binary.LittleEndian.AppendUint32(out, 0x14)
		out = binary.LittleEndian.AppendUint32(out, 4242)
		out = append(out, bytes.Join(mem[1:], nil)...)
		return errors.Join(err, os.WriteFile(filepath.Join(folder, "npu.rsp"), out, 0o600))
	}
}

// jobOf places a vector's call in a model's memory.
func jobOf(t *testing.T, v *ethosutest.Vector) (*fvp.Job, [][]byte) {
	t.Helper()
	c := v.Call(t)
	p, err := npu.Decode(c.Driver.Config, c.Driver.Stream)
	if err != nil {
		t.Fatal(err)
	}
	j := &fvp.Job{Config: c.Driver.Config, Count: true, Events: []uint32{17, 5}}
	end := map[fvp.Pool]uint32{}
	put := func(pool fvp.Pool, n int64) fvp.Range {
		r := fvp.Range{Pool: pool, Offset: end[pool], Bytes: uint32(n)}
		end[pool] += uint32(n+63) &^ 63
		return r
	}
	j.Stream = put(fvp.DDR, int64(len(c.Driver.Stream)))
	j.Regions[0] = put(fvp.DDR, int64(len(c.Weights)))
	j.Regions[1] = put(fvp.SRAM, c.Scratch)
	if n := p.Footprint()[2]; n > 0 {
		j.Regions[2] = put(fvp.SRAM, n)
	}
	j.Reads = []fvp.Read{{To: j.Stream, From: c.Driver.Stream}, {To: j.Regions[0], From: c.Weights}}
	at := func(r *ethosutest.Record) fvp.Range {
		place := j.Regions[r.Region]
		return fvp.Range{Pool: place.Pool, Offset: place.Offset + uint32(r.Offset), Bytes: uint32(r.Bytes())}
	}
	for i := range c.Inputs {
		j.Reads = append(j.Reads, fvp.Read{To: at(&c.Inputs[i]), From: v.Files[ethosutest.InputFile(i)]})
	}
	var outputs [][]byte
	for i := range c.Outputs {
		outputs = append(outputs, make([]byte, c.Outputs[i].Bytes()))
		j.Writes = append(j.Writes, fvp.Write{From: at(&c.Outputs[i]), To: outputs[i]})
	}
	return j, outputs
}

// TestFirmwareOnQEMU runs the real firmware: start, files, memory, consecutive jobs, and what it
// refuses.
func TestFirmwareOnQEMU(t *testing.T) {
	names := []string{"u55-128/add/d0", "u55-128/digits_cnn/d0", "u55-128/two_part_topk_cpu/d0", "u55-128/two_part_topk_cpu/d1", "u85-256/conv3x3/d0"}
	first, _ := jobOf(t, ethosutest.Find(t, names[0]))
	m := onQEMU(t, first.Config, hostNPU(0))
	for range 2 {
		for _, name := range names {
			v := ethosutest.Find(t, name)
			job, outputs := jobOf(t, v)
			r, err := m.Run(context.Background(), job, time.Minute)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if r.Cycles != 4242 || r.Events[0] != 17 || r.Events[1] != 5 {
				t.Errorf("%s: counted %+v, want 4242 cycles, events 17 and 5", name, r)
			}
			for i, got := range outputs {
				ethosutest.Compare(t, fmt.Sprintf("%s output %d", name, i), got, v.Files[ethosutest.OutputFile(i)])
			}
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(j *fvp.Job)
		want  string
	}{
		{"stream outside of its pool", func(j *fvp.Job) { j.Stream.Offset = 0xfffffff0 }, "malformed (0x1)"},
		{"stream of an unknown pool", func(j *fvp.Job) { j.Stream.Pool = 7 }, "malformed (0x1)"},
		{"no stream", func(j *fvp.Job) { j.Stream.Bytes = 0 }, "malformed (0x1)"},
		{"region beyond its pool", func(j *fvp.Job) { j.Regions[1].Bytes = 0xffffffff }, "malformed (0x3)"},
		{"input beyond its pool", func(j *fvp.Job) { j.Reads[1].To.Offset = 0x0ffffff8; j.Reads[1].To.Bytes = 16 }, "malformed (0x65)"},
		{"input that ends early", func(j *fvp.Job) { j.Reads[2].To.Bytes = 1 << 20 }, "could not read or write its files (0x2)"},
		{"output beyond its pool", func(j *fvp.Job) { j.Writes[0].From.Pool = 2 }, "malformed (0x10000)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			job, _ := jobOf(t, ethosutest.Find(t, names[0]))
			c.spoil(job)
			_, err := m.Run(context.Background(), job, time.Minute)
			if !errors.Is(err, fvp.ErrFailed) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if !m.Alive() {
				t.Fatal("the firmware has ended")
			}
		})
	}
	v := ethosutest.Find(t, names[1])
	job, outputs := jobOf(t, v)
	if _, err := m.Run(context.Background(), job, time.Minute); err != nil {
		t.Fatal(err)
	}
	ethosutest.Compare(t, "after refused jobs", outputs[0], v.Files[ethosutest.OutputFile(0)])
}

// TestFirmwareReportsFaults makes the NPU fail.
func TestFirmwareReportsFaults(t *testing.T) {
	job, _ := jobOf(t, ethosutest.Find(t, "u55-128/add/d0"))
	m := onQEMU(t, job.Config, hostNPU(4))
	_, err := m.Run(context.Background(), job, time.Minute)
	var e *fvp.Error
	if !errors.As(err, &e) || e.Status != 4 || !strings.Contains(err.Error(), "register STATUS 0x14") {
		t.Errorf("got %v, want status 4 and register STATUS 0x14", err)
	}
}

// TestFirmwareWithoutNPU starts the image of Corstone-300 on QEMU, whose board is the same except
// for the NPU.
func TestFirmwareWithoutNPU(t *testing.T) {
	qemu := needs.Tool(t, "qemu-system-arm", "qemu-system-arm")
	c := ethosutest.Find(t, "u55-128/add/d0").Call(t).Driver.Config
	_, err := fvp.Answered(context.Background(), qemu, prebuilt(t, "corstone-300.elf"), c, qemuArguments, nil)
	if !errors.Is(err, fvp.ErrUnsupported) || !strings.Contains(err.Error(), "no NPU where the board has it") {
		t.Errorf("got %v, want %v: no NPU", err, fvp.ErrUnsupported)
	}
}
