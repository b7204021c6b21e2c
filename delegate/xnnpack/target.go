package xnnpack

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// Target is the oldest release of ExecuTorch whose runtime executes what a [Writer] writes, as its minor version: 0 is 1.0.
// All later releases known to this package execute it, too.
type Target int

// ParseTarget parses a release, such as 1.0. The error of one that is not known is a *TargetError.
func ParseTarget(release string) (Target, error) {
	minor, ok := strings.CutPrefix(release, "1.")
	n, err := strconv.ParseUint(minor, 10, 8)
	if t := Target(n); ok && err == nil && n <= graph.LastRelease && t.String() == release {
		return t, nil
	}
	return 0, &TargetError{release}
}

// String returns the release.
func (t Target) String() string { return graph.ReleaseName(int(t)) }

// TargetError reports a release that is not known. errors.Is finds [delegate.ErrUnsupported] in it.
type TargetError struct{ Release string }

func (e *TargetError) Error() string {
	return fmt.Sprintf("ExecuTorch %.20q, want a release from %s to %s", e.Release, graph.ReleaseName(0), graph.ReleaseName(graph.LastRelease))
}

// Unwrap returns delegate.ErrUnsupported.
func (e *TargetError) Unwrap() error { return delegate.ErrUnsupported }
