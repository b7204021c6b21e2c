package pte

import (
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// Format is one of ExecuTorch's file formats.
type Format uint8

// Supported formats.
const (
	FormatUnknown Format = iota
	FormatPTE            // program, read by Parse
	FormatPTD            // named data, read by ParseData
	FormatBPTE           // program with test cases, read by ParseBundle
)

var formats = [...]struct{ identifier, name string }{
	FormatUnknown: {"", "unknown file"},
	FormatPTE:     {"ET12", ".pte program"},
	FormatPTD:     {"FT01", ".ptd data file"},
	FormatBPTE:    {"BP08", ".bpte bundled program"},
}

func (f Format) String() string {
	if int(f) >= len(formats) {
		f = FormatUnknown
	}
	return formats[f].name
}

// Sniff returns the format according to the file identifier, whatever its version. Eight bytes are
// enough.
func Sniff(data []byte) Format {
	id := flatbuf.Identifier(data)
	for f := FormatPTE; int(f) < len(formats); f++ {
		if sameFamily(id, formats[f].identifier) {
			return f
		}
	}
	return FormatUnknown
}

// sameFamily reports whether two identifiers differ at most in the two digits of their version.
func sameFamily(id, of string) bool {
	return len(id) == len(of) && id[:2] == of[:2] && isDigit(id[2]) && isDigit(id[3])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// StartBytes is the number of first bytes that Sniff and CheckStart examine.
const StartBytes = flatbuf.HeaderSize

// CheckStart checks the first bytes of a file. If it does not have one of the wanted formats, or
// has another version, the error is the same as for the whole file.
func CheckStart(start []byte, want ...Format) error {
	as := want[0]
	if got := Sniff(start); slices.Contains(want, got) {
		as = got
	}
	return checkIdentifier(start, as)
}

// newestVersion is the newest supported schema version of programs and data files.
const newestVersion = 0

// readVersion reads a root's schema version and records an error if it is newer.
func readVersion(root flatbuf.Table) uint32 {
	v := root.Uint32(0, "version", 0)
	if v > newestVersion {
		root.Failf(ErrVersion, 0, "version", "schema version %d, want at most %d: %s", v, newestVersion, otherVersion(true))
	}
	return v
}

// otherVersion explains which exporter writes another version, and the remedy.
func otherVersion(newer bool) string {
	if newer {
		return "written by a newer exporter; export with an older ExecuTorch, or update etrun"
	}
	return "written by an older exporter; export again"
}

// checkIdentifier returns an error unless data has the wanted format and version.
func checkIdentifier(data []byte, want Format) error {
	id, w := flatbuf.Identifier(data), formats[want]
	switch got := Sniff(data); {
	case id == "":
		return faultf(ErrFormat, 0, "", "%d bytes, too short for the file identifier of a %s", len(data), w.name)
	case id == w.identifier:
		return nil
	case got == want:
		return faultf(ErrVersion, 4, "", "file identifier %q, want %q: another version of the format, %s", id, w.identifier, otherVersion(id > w.identifier))
	case got != FormatUnknown:
		return faultf(ErrFormat, 4, "", "file identifier %q of a %v, want %q of a %s", id, got, w.identifier, w.name)
	default:
		return faultf(ErrFormat, 4, "", "file identifier %q, want %q", id, w.identifier)
	}
}
