package speech

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteSRT writes segments as subtitles in SubRip's format.
func WriteSRT(w io.Writer, segments []Segment) error {
	for i := range segments {
		s := &segments[i]
		if _, err := fmt.Fprintf(w, "%d\n%s --> %s\n%s\n\n", i+1, clock(s.Start, ","), clock(s.End, ","), strings.TrimSpace(s.Text)); err != nil {
			return err
		}
	}
	return nil
}

// WriteVTT writes segments as WebVTT.
func WriteVTT(w io.Writer, segments []Segment) error {
	if _, err := io.WriteString(w, "WEBVTT\n\n"); err != nil {
		return err
	}
	for i := range segments {
		s := &segments[i]
		text := strings.ReplaceAll(strings.TrimSpace(s.Text), "-->", "->")
		if _, err := fmt.Fprintf(w, "%s --> %s\n%s\n\n", clock(s.Start, "."), clock(s.End, "."), text); err != nil {
			return err
		}
	}
	return nil
}

// clock writes a time as hours, minutes, seconds and milliseconds.
func clock(d time.Duration, point string) string {
	ms := d.Round(time.Millisecond).Milliseconds()
	return fmt.Sprintf("%02d:%02d:%02d%s%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, point, ms%1000)
}
