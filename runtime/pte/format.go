package pte

import (
	"slices"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// Format is one of ExecuTorch's file formats.
type Format uint8

// The formats that this package reads.
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

// Sniff tells the format by the file identifier, of whatever version. Eight bytes
// are enough.
func Sniff(data []byte) Format {
	id := flatbuf.Identifier(data)
	for f := FormatPTE; int(f) < len(formats); f++ {
		if sameFamily(id, formats[f].identifier) {
			return f
		}
	}
	return FormatUnknown
}

// sameFamily reports that two identifiers differ at most in the two digits of
// their version.
func sameFamily(id, of string) bool {
	return len(id) == len(of) && id[:2] == of[:2] && isDigit(id[2]) && isDigit(id[3])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// StartBytes is how many of a file's first bytes Sniff and CheckStart look at.
const StartBytes = flatbuf.HeaderSize

// CheckStart refuses a file by its first bytes, with the error that reading the whole
// would give: it is not one of the wanted formats, or in another version.
func CheckStart(start []byte, want ...Format) error {
	as := want[0]
	if got := Sniff(start); slices.Contains(want, got) {
		as = got
	}
	return checkIdentifier(start, as)
}

// newestVersion is the schema version that this package reads, of programs and of data files.
const newestVersion = 0

// readVersion reads a root's schema version, and refuses one that is newer.
func readVersion(root flatbuf.Table) uint32 {
	v := root.Uint32(0, "version", 0)
	if v > newestVersion {
		root.Failf(ErrVersion, 0, "version", "schema version %d, the newest known is %d: %s", v, newestVersion, otherVersion(true))
	}
	return v
}

// otherVersion says who wrote a file of another version, and the way out.
func otherVersion(newer bool) string {
	if newer {
		return "written by a newer exporter; export with an older ExecuTorch, or update etrun"
	}
	return "written by an older exporter; export again"
}

// checkIdentifier refuses whatever is not the wanted format in the wanted version.
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
