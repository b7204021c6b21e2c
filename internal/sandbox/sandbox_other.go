//go:build !linux || !(amd64 || arm64)

package sandbox

// Thread has no effect on this platform.
func Thread(Files) []Layer {
	return []Layer{{Privileges, ErrPlatform}, {Capabilities, ErrPlatform}, {Landlock, ErrPlatform}}
}

// Filter has no effect on this platform.
func Filter(Stage) Layer { return Layer{Seccomp, ErrPlatform} }

// Available reports that no layer is available.
func Available() []Layer {
	return []Layer{{Landlock, ErrPlatform}, {Seccomp, ErrPlatform}}
}
