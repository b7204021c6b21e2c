package delegatetest

import (
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// checkWorkspace is CheckPlanned, if units leave working memory to the plan.
func (s *subject) checkWorkspace() error {
	img, ok := s.img.(lowering.Planned)
	if !ok {
		return nil
	}
	var calls [][]*tensor.Value
	for _, x := range s.samples() {
		list := s.newArguments()
		if err := list.set(s, x, 0); err != nil {
			return err
		}
		calls = append(calls, list.values())
	}
	return CheckPlanned(img, nil, calls)
}
