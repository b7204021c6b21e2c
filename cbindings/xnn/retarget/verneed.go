package retarget

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
)

// need is a version requirement with exactly the symbols that have it.
type need struct {
	version string
	symbols []string
}

// baseVersion is the oldest glibc version of each architecture, which all long-standing functions
// have.
var baseVersion = map[elf.Machine]string{
	elf.EM_X86_64:  "GLIBC_2.2.5",
	elf.EM_AARCH64: "GLIBC_2.17",
}

// Sizes and field offsets of Elf64_Verneed and Elf64_Vernaux.
const (
	verneedSize = 16
	verneedCnt  = 2
	verneedAux  = 8
	verneedNext = 12
	vernauxSize = 16
	vernauxHash = 0
	vernauxName = 8
	vernauxNext = 12
)

// retarget modifies image, a shared library, so that want.version is no longer required: the only
// requirement of that name becomes the architecture's base version. It reports whether there was
// one, and fails if the requirement belongs to symbols other than want.symbols.
func retarget(image []byte, want need) (changed bool, err error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return false, err
	}
	base, ok := baseVersion[f.Machine]
	if !ok || f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || f.Type != elf.ET_DYN {
		return false, fmt.Errorf("%v %v %v: want a 64-bit little-endian shared library of amd64 or arm64", f.Class, f.Machine, f.Type)
	}
	verneed := f.SectionByType(elf.SHT_GNU_VERNEED)
	if verneed == nil {
		return false, nil
	}
	if int(verneed.Link) >= len(f.Sections) {
		return false, fmt.Errorf("%s: string table is section %d of %d", verneed.Name, verneed.Link, len(f.Sections))
	}
	strings, err := f.Sections[verneed.Link].Data()
	if err != nil {
		return false, err
	}
	entries, err := findVersion(verneed, strings, want.version)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	if len(entries) > 1 {
		return false, fmt.Errorf("%s is required %d times, want once", want.version, len(entries))
	}
	if err := checkSymbols(f, want); err != nil {
		return false, err
	}
	at := bytes.Index(strings, []byte("\x00"+base+"\x00"))
	if at < 0 {
		return false, fmt.Errorf("%s is not among the library's names", base)
	}
	entry := image[verneed.Offset+entries[0]:]
	binary.LittleEndian.PutUint32(entry[vernauxHash:], elfHash(base))
	binary.LittleEndian.PutUint32(entry[vernauxName:], uint32(at+1))
	return true, nil
}

// findVersion returns the offsets, inside the section, of the Elf64_Vernaux entries of one version.
func findVersion(section *elf.Section, strings []byte, version string) ([]uint64, error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	var found []uint64
	for at := uint64(0); ; {
		if at+verneedSize > uint64(len(data)) {
			return nil, fmt.Errorf("%s: record at %d of %d bytes", section.Name, at, len(data))
		}
		record := data[at:]
		aux := at + uint64(binary.LittleEndian.Uint32(record[verneedAux:]))
		for range binary.LittleEndian.Uint16(record[verneedCnt:]) {
			if aux+vernauxSize > uint64(len(data)) {
				return nil, fmt.Errorf("%s: entry at %d of %d bytes", section.Name, aux, len(data))
			}
			if nameAt(strings, binary.LittleEndian.Uint32(data[aux+vernauxName:])) == version {
				found = append(found, aux)
			}
			next := uint64(binary.LittleEndian.Uint32(data[aux+vernauxNext:]))
			if next < vernauxSize {
				break
			}
			aux += next
		}
		next := uint64(binary.LittleEndian.Uint32(record[verneedNext:]))
		if next < verneedSize {
			return found, nil
		}
		at += next
	}
}

func nameAt(strings []byte, at uint32) string {
	if uint64(at) >= uint64(len(strings)) {
		return ""
	}
	name, _, _ := bytes.Cut(strings[at:], []byte{0})
	return string(name)
}

// checkSymbols checks that exactly the expected symbols require the version.
func checkSymbols(f *elf.File, want need) error {
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return err
	}
	var got []string
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF && s.Version == want.version {
			got = append(got, s.Name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want.symbols) {
		return fmt.Errorf("%s is required for %q, want %q", want.version, got, want.symbols)
	}
	return nil
}

// elfHash is the hash of the System V ABI, which version entries contain in addition to the name.
func elfHash(name string) uint32 {
	var h uint32
	for _, c := range []byte(name) {
		h = h<<4 + uint32(c)
		top := h & 0xf0000000
		h ^= top>>24 | top
	}
	return h
}
