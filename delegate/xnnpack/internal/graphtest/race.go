//go:build race

package graphtest

func init() { RaceDetector = true }
