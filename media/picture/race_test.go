//go:build race

package picture

const raceDetector = true
