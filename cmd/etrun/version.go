package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker (-X main.release=…).
var release = ""

// version names the build: release or revision, Go version and platform.
func version() string {
	name := release
	if info, ok := debug.ReadBuildInfo(); ok && name == "" {
		name = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				name = s.Value
			}
		}
	}
	if name == "" {
		name = "(devel)"
	}
	return fmt.Sprintf("etrun %s %s %s/%s", name, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
