//go:build !race

package picture

const raceDetector = false
