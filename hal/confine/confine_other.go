//go:build !linux || !(amd64 || arm64)

package confine

// Thread confines nothing here.
func Thread(Files) []Layer {
	return []Layer{{Privileges, ErrPlatform}, {Capabilities, ErrPlatform}, {Landlock, ErrPlatform}}
}

// Filter limits nothing here.
func Filter(Stage) Layer { return Layer{Seccomp, ErrPlatform} }

// Available says what the kernel has of each layer.
func Available() []Layer {
	return []Layer{{Landlock, ErrPlatform}, {Seccomp, ErrPlatform}}
}
