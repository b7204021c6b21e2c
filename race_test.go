//go:build race

package etrun

func init() { raceDetector = true }
