//go:build !cgo || nodl || !linux || !(amd64 || arm64)

package xnn

// allocator returns 0: the library has its own allocator.
func allocator() Address { return 0 }
