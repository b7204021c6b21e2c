package cpu

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Processor is a text that tells processors apart by what code is chosen by: the model and
// the extensions.
var Processor = sync.OnceValue(func() string {
	text := fmt.Sprintln(Features())
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		name, _, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name", "flags", "Features", "CPU implementer", "CPU part", "CPU variant":
			text += line
		}
	}
	return text
})
