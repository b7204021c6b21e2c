package cpu

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Processor returns a string that identifies the processor's model and extensions, by which code is
// selected.
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
