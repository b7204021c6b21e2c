//go:build race

package xnnpack

func init() { raceDetector = true }
