package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/etrun-go/etrun/hal/cpu"
)

type backendReport struct {
	ID     string `json:"id"`
	Loaded bool   `json:"loaded"`
	Engine string `json:"engine,omitempty"`
	Detail string `json:"detail,omitempty"`
	Cure   string `json:"cure,omitempty"` // how to improve it
}

// processorName returns the first "model name" of /proc/cpuinfo, empty if there is none.
func processorName() string {
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

// quota formats the CPU quota of the process, empty if there is none.
func quota() string {
	if q, limited := cpu.Quota(); limited {
		return fmt.Sprintf("%.3g processors", q)
	}
	return ""
}
