package cpu

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Cores are processors of one kind, on Arm.
type Cores struct {
	Name    string // of the manufacturer, or the numbers of the part
	Count   int
	InOrder bool // executes instructions in the order of the program: false where that is unknown
}

// AllCores returns the kinds of cores of the machine, in the order of its processors: none where they are unknown, and on other
// processors than those of Arm.
var AllCores = sync.OnceValue(func() []Cores {
	if runtime.GOARCH != "arm64" && runtime.GOARCH != "arm" {
		return nil
	}
	return readCores(os.DirFS("/"))
})

// DescribeCores lists kinds of cores for a reader.
func DescribeCores(list []Cores) string {
	var parts []string
	for _, c := range list {
		text := fmt.Sprint(c.Count, " ", c.Name)
		if c.InOrder {
			text += " (in order)"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// maxText bounds what is read of a file that describes processors: containers may bring their own. maxKinds bounds the kinds of
// cores, and maxProcessors the processors that are looked for.
const (
	maxText       = 1 << 20
	maxKinds      = 16
	maxProcessors = 1024
)

// readCores returns the cores that /proc/cpuinfo has or, where it has none, those of /sys.
func readCores(root fs.FS) []Cores {
	if list := parseCores(readText(root, "proc/cpuinfo")); len(list) > 0 {
		return list
	}
	var list coreList
	for i := range maxProcessors {
		text := readText(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/regs/identification/midr_el1", i))
		midr, err := strconv.ParseUint(strings.TrimSpace(text), 0, 64)
		if err != nil {
			break
		}
		list.add(core{uint8(midr >> 24), uint16(midr >> 4 & 0xfff)}, 1)
	}
	return list
}

// readText returns the start of a file, "" if it cannot be read.
func readText(root fs.FS, path string) string {
	f, err := root.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return ""
	}
	return string(text)
}

// parseCores returns the cores in a text of the form of /proc/cpuinfo. Each processor has its part there, or several have one
// after them, in texts of old kernels.
func parseCores(text string) []Cores {
	var list coreList
	implementer, processors := uint64(0), 0
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "processor":
			processors++
		case "CPU implementer":
			var err error
			if implementer, err = strconv.ParseUint(value, 0, 8); err != nil {
				implementer = 0 // of no manufacturer
			}
		case "CPU part":
			if part, err := strconv.ParseUint(value, 0, 12); err == nil {
				list.add(core{uint8(implementer), uint16(part)}, max(processors, 1))
			}
			processors = 0
		}
	}
	return list
}

// coreList is a list of cores that are added one by one.
type coreList []Cores

func (l *coreList) add(c core, n int) {
	known, name := knownCores[c], c.name()
	for i := range *l {
		if (*l)[i].Name == name {
			(*l)[i].Count += n
			return
		}
	}
	if len(*l) < maxKinds {
		*l = append(*l, Cores{name, n, known.inOrder})
	}
}
