package session

import (
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/ethosu"
	"github.com/etrun-go/etrun/delegate/xnnpack"
)

// backendFlags are flags for delegates of one backend.
var backendFlags = []struct{ flag, backend string }{
	{"xnnpack", xnnpack.ID}, {"weights-cache", xnnpack.ID}, {"device", ethosu.ID}, {"fvp", ethosu.ID}, {"qparams", ethosu.ID},
}

// loweringModes are the modes that lower parts to backends.
var loweringModes = []string{string(etrun.LowerAuto), string(etrun.LowerAll), string(etrun.LowerVerify)}

// warnOfFlags reports flags without effect.
func (s *Session) warnOfFlags() {
	for _, f := range backendFlags {
		if s.options.isSet(f.flag) && !s.mayUse(f.backend) {
			s.warn("--" + f.flag + " has no effect: the program has no delegate of " + f.backend)
		}
	}
	if s.options.isSet("seed") && !s.random && !s.drawsNumbers() {
		s.warn("--seed has no effect: neither inputs nor operators are random")
	}
}

// mayUse reports whether a delegate of the program, or one that lowering makes, may run on a backend.
func (s *Session) mayUse(backend string) bool {
	return s.hasDelegate(backend) || backend == xnnpack.ID && slices.Contains(loweringModes, s.options.Lower)
}

func (s *Session) hasDelegate(backend string) bool {
	for i := range s.Spec().Methods {
		for _, d := range s.Spec().Methods[i].Delegates {
			if d.ID == backend {
				return true
			}
		}
	}
	return false
}

// drawsNumbers reports whether an operator draws random numbers.
func (s *Session) drawsNumbers() bool {
	for i := range s.Spec().Methods {
		for _, o := range s.Spec().Methods[i].Operators {
			if op, _, ok, err := etrun.DefaultOperators().Lookup(o.FullName()); ok && err == nil && op.Random {
				return true
			}
		}
	}
	return false
}
