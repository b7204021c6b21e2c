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

// IsZen4 reports whether the processor is an AMD Zen 4: family 25 with AVX-512.
var IsZen4 = sync.OnceValue(func() bool {
	info, _ := os.ReadFile("/proc/cpuinfo")
	amd, family := false, false
	for line := range strings.Lines(string(info)) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.TrimSpace(name) {
		case "vendor_id":
			amd = value == "AuthenticAMD"
		case "cpu family":
			family = value == "25"
		}
	}
	return amd && family && Has("avx512f")
})
