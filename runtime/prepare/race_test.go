//go:build race

package prepare

func init() { raceDetector = true }
