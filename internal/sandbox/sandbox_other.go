//go:build !linux || !(amd64 || arm64)

package sandbox

// Thread has no effect on this platform.
func Thread(Files) []Layer {
	return []Layer{{privileges, ErrPlatform}, {capabilities, ErrPlatform}, {landlock, ErrPlatform}}
}

// Filter has no effect on this platform.
func Filter(Stage) Layer { return Layer{seccomp, ErrPlatform} }

// Available reports that no layer is available.
func Available() []Layer {
	return []Layer{{landlock, ErrPlatform}, {seccomp, ErrPlatform}}
}
