// Package machine describes the machine, for reports.
package machine

import (
	"fmt"
	"os"
	"strings"

	"github.com/etrun-go/etrun/hal/cpu"
)

// Backend is the state of a delegate's backend.
type Backend struct {
	ID     string `json:"id"`
	Loaded bool   `json:"loaded"`
	Engine string `json:"engine,omitempty"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"` // how to improve it
}

// Processor returns the first "model name" of /proc/cpuinfo, empty if there is none.
func Processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Quota formats the CPU quota of the process, empty if there is none.
func Quota() string {
	if q, limited := cpu.Quota(); limited {
		return fmt.Sprintf("%.3g processors", q)
	}
	return ""
}
