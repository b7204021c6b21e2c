package retarget

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// library describes a minimal shared library: its undefined symbols and the version
// index of each, and the version requirements of libm.so.6 in index order from 2.
type library struct {
	machine  elf.Machine
	symbols  []string
	versions []int
	needs    []string
}

// build returns the library as an ELF file that contains only the sections a dynamic linker reads
// for versions.
func (l library) build() []byte {
	le := binary.LittleEndian
	names := []byte("\x00libm.so.6\x00")
	name := func(s string) uint32 {
		at := len(names)
		names = append(append(names, s...), 0)
		return uint32(at)
	}
	symbols := make([]byte, 24)
	versions := make([]byte, 2)
	for i, s := range l.symbols {
		symbols = le.AppendUint32(symbols, name(s))
		symbols = append(symbols, elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), 0)
		symbols = append(symbols, make([]byte, 18)...)
		versions = le.AppendUint16(versions, uint16(l.versions[i]))
	}
	needs := le.AppendUint16(nil, 1)
	needs = le.AppendUint16(needs, uint16(len(l.needs)))
	needs = le.AppendUint32(needs, 1)
	needs = le.AppendUint32(needs, verneedSize)
	needs = le.AppendUint32(needs, 0)
	for i, v := range l.needs {
		next := uint32(vernauxSize)
		if i == len(l.needs)-1 {
			next = 0
		}
		needs = le.AppendUint32(needs, elfHash(v))
		needs = le.AppendUint16(needs, 0)
		needs = le.AppendUint16(needs, uint16(i+2))
		needs = le.AppendUint32(needs, name(v))
		needs = le.AppendUint32(needs, next)
	}
	return assemble(l.machine, names, symbols, versions, needs)
}

// assemble lays out the sections after the file header: 1 .dynstr, 2 .dynsym, 3 .gnu.version, 4
// .gnu.version_r, 5 the section names.
func assemble(machine elf.Machine, names, symbols, versions, needs []byte) []byte {
	le := binary.LittleEndian
	titles := "\x00.dynstr\x00.dynsym\x00.gnu.version\x00.gnu.version_r\x00.shstrtab\x00"
	image := make([]byte, 64)
	headers := []elf.Section64{{}}
	for _, s := range []struct {
		title string
		kind  elf.SectionType
		link  uint32
		each  uint64
		data  []byte
	}{
		{".dynstr", elf.SHT_STRTAB, 0, 0, names},
		{".dynsym", elf.SHT_DYNSYM, 1, 24, symbols},
		{".gnu.version", elf.SHT_GNU_VERSYM, 2, 2, versions},
		{".gnu.version_r", elf.SHT_GNU_VERNEED, 1, 0, needs},
		{".shstrtab", elf.SHT_STRTAB, 0, 0, []byte(titles)},
	} {
		headers = append(headers, elf.Section64{Name: uint32(strings.Index(titles, s.title+"\x00")),
			Type: uint32(s.kind), Off: uint64(len(image)), Size: uint64(len(s.data)), Link: s.link, Info: 1,
			Addralign: 1, Entsize: s.each})
		image = append(image, s.data...)
	}
	header := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1, Ehsize: 64,
		Shoff: uint64(len(image)), Shentsize: 64, Shnum: uint16(len(headers)), Shstrndx: uint16(len(headers) - 1)}
	copy(header.Ident[:], "\x7fELF\x02\x01\x01")
	var out bytes.Buffer
	binary.Write(&out, le, header)
	copy(image, out.Bytes())
	out.Reset()
	binary.Write(&out, le, headers)
	return append(image, out.Bytes()...)
}

// TestRetarget checks which symbols get the base version, and the errors for the other libraries.
func TestRetarget(t *testing.T) {
	amd64 := []string{"GLIBC_2.38", "GLIBC_2.29", "GLIBC_2.2.5"}
	tests := []struct {
		name    string
		lib     library
		changed bool
		refused string // part of the message
	}{
		{"only fmodf", library{elf.EM_X86_64, []string{"expf", "fmodf", "sqrtf"}, []int{3, 2, 4}, amd64}, true, ""},
		{"arm64 base", library{elf.EM_AARCH64, []string{"fmodf"}, []int{2}, []string{"GLIBC_2.38", "GLIBC_2.17"}}, true, ""},
		{"no change needed", library{elf.EM_X86_64, []string{"expf"}, []int{2}, []string{"GLIBC_2.29"}}, false, ""},
		{"fmodf and another symbol", library{elf.EM_X86_64, []string{"fmodf", "sqrtf"}, []int{2, 2}, amd64}, false, `["fmodf" "sqrtf"]`},
		{"only another symbol", library{elf.EM_X86_64, []string{"strtol"}, []int{2}, amd64}, false, `["strtol"]`},
		{"no base version", library{elf.EM_X86_64, []string{"fmodf"}, []int{2}, []string{"GLIBC_2.38"}}, false, "GLIBC_2.2.5"},
		{"required twice", library{elf.EM_X86_64, []string{"fmodf"}, []int{2}, []string{"GLIBC_2.38", "GLIBC_2.38", "GLIBC_2.2.5"}}, false, "2 times"},
		{"other machine", library{elf.EM_RISCV, []string{"fmodf"}, []int{2}, amd64}, false, "EM_RISCV"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			image := test.lib.build()
			before := bytes.Clone(image)
			changed, err := retarget(image, need{"GLIBC_2.38", []string{"fmodf"}})
			switch {
			case test.refused != "":
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("got error %v, want one with %q", err, test.refused)
				}
				fallthrough
			case !test.changed:
				if changed || !bytes.Equal(image, before) {
					t.Fatal("image changed, want no change")
				}
			default:
				checkRetargeted(t, image, before)
			}
		})
	}
}

// checkRetargeted checks that fmodf has the base version and everything else is unchanged.
func checkRetargeted(t *testing.T, image, before []byte) {
	t.Helper()
	got, want := symbolsOf(t, image), symbolsOf(t, before)
	f, _ := elf.NewFile(bytes.NewReader(image))
	for i := range want {
		if want[i].Name == "fmodf" {
			want[i].Version = baseVersion[f.Machine]
		}
		if got[i] != want[i] {
			t.Errorf("symbol %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
	differ := 0
	for i := range image {
		if image[i] != before[i] {
			differ++
		}
	}
	if differ == 0 || differ > 8 {
		t.Errorf("%d bytes differ, want 1 to 8", differ)
	}
}

func symbolsOf(t *testing.T, image []byte) []elf.Symbol {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFile changes a file twice: the second run has no effect.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lib.so")
	lib := library{elf.EM_X86_64, []string{"fmodf"}, []int{2}, []string{"GLIBC_2.38", "GLIBC_2.2.5"}}
	if err := os.WriteFile(path, lib.build(), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for range 2 {
		if err := File(path, &out); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(out.String(), "no longer required"); got != 1 {
		t.Errorf("got %d reports, want 1: %q", got, out.String())
	}
	if err := File(path+".missing", io.Discard); err == nil {
		t.Error("no error for a missing file")
	}
}

// FuzzRetarget checks that the result is an error or an image that still parses, without a panic.
func FuzzRetarget(f *testing.F) {
	f.Add(library{elf.EM_X86_64, []string{"fmodf"}, []int{2}, []string{"GLIBC_2.38", "GLIBC_2.2.5"}}.build())
	f.Fuzz(func(t *testing.T, image []byte) {
		if changed, err := retarget(image, need{"GLIBC_2.38", []string{"fmodf"}}); changed && err == nil {
			symbolsOf(t, image)
		}
	})
}
