//go:build !amd64 && !arm64

package cpu

var features []Feature
