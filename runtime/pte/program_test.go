package pte_test

import (
	"reflect"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

type (
	kinds    = map[tensor.Kind]int
	storages = map[pte.Storage]int
	kindsOf  = map[pte.InstructionKind]int
)

func TestParse(t *testing.T) {
	for name, want := range map[string]facts{
		"conv_portable.pte": {true, 0, 1, 61, 10, 0, 0, kindsOf{pte.KernelCall: 11},
			kinds{tensor.None: 1, tensor.KindTensor: 26, tensor.KindDouble: 2, tensor.KindInt: 18, tensor.KindBool: 5, tensor.KindIntList: 7, tensor.KindTensorList: 2},
			storages{pte.Constant: 10, pte.Planned: 16}},
		"dynamic_view.pte": {true, 0, 1, 14, 5, 0, 0, kindsOf{pte.KernelCall: 5},
			kinds{tensor.KindTensor: 5, tensor.KindInt: 6, tensor.KindBool: 1, tensor.KindIntList: 2},
			storages{pte.Constant: 1, pte.Planned: 4}},
		"external_weights.pte": {false, 0, 1, 10, 2, 0, 0, kindsOf{pte.KernelCall: 2},
			kinds{tensor.KindTensor: 5, tensor.KindInt: 4, tensor.KindIntList: 1},
			storages{pte.External: 2, pte.Planned: 3}},
		"index_lists.pte": {false, 0, 1, 4, 1, 0, 0, kindsOf{pte.KernelCall: 1},
			kinds{tensor.KindTensor: 3, tensor.KindOptionalTensorList: 1}, storages{pte.Planned: 3}},
		"initial_state.pte": {true, 0, 1, 7, 3, 0, 0, kindsOf{pte.KernelCall: 3},
			kinds{tensor.KindTensor: 5, tensor.KindInt: 1, tensor.KindBool: 1},
			storages{pte.Constant: 1, pte.PlannedInit: 1, pte.Planned: 3}},
		"inline_delegate.pte": {true, 6, 1, 2, 0, 1, 0, kindsOf{pte.DelegateCall: 1},
			kinds{tensor.KindTensor: 2}, storages{pte.Planned: 2}},
		"map_loop.pte": {false, 0, 1, 12, 7, 0, 0, kindsOf{pte.KernelCall: 7, pte.JumpFalseCall: 1},
			kinds{tensor.KindTensor: 5, tensor.KindInt: 6, tensor.KindBool: 1}, storages{pte.Planned: 5}},
		"named_data.pte": {true, 2, 1, 2, 0, 1, 0, kindsOf{pte.DelegateCall: 1},
			kinds{tensor.KindTensor: 2}, storages{pte.Planned: 2}},
		"scalar_inputs.pte": {true, 0, 1, 16, 4, 0, 0, kindsOf{pte.KernelCall: 4},
			kinds{tensor.None: 1, tensor.KindTensor: 7, tensor.KindDouble: 1, tensor.KindInt: 2, tensor.KindBool: 3, tensor.KindIntList: 2},
			storages{pte.Constant: 2, pte.Planned: 5}},
		"split_passthrough.pte": {true, 0, 1, 11, 2, 0, 0, kindsOf{pte.KernelCall: 2},
			kinds{tensor.KindTensor: 5, tensor.KindInt: 3, tensor.KindIntList: 1, tensor.KindTensorList: 2},
			storages{pte.Constant: 1, pte.Planned: 2, pte.Unplanned: 2}},
		"stack_traces.pte": {true, 0, 1, 63, 7, 0, 8, kindsOf{pte.KernelCall: 8},
			kinds{tensor.KindTensor: 17, tensor.KindInt: 29, tensor.KindBool: 3, tensor.KindIntList: 13, tensor.KindTensorList: 1},
			storages{pte.Constant: 6, pte.Planned: 11}},
		"two_conds.pte": {true, 0, 1, 19, 2, 0, 0, kindsOf{pte.KernelCall: 5, pte.MoveCall: 4, pte.JumpFalseCall: 4},
			kinds{tensor.KindTensor: 14, tensor.KindInt: 3, tensor.KindBool: 2}, storages{pte.Constant: 4, pte.Planned: 10}},
		"two_methods.pte": {true, 0, 2, 14, 4, 0, 0, kindsOf{pte.KernelCall: 5},
			kinds{tensor.KindTensor: 9, tensor.KindInt: 2, tensor.KindBool: 2, tensor.KindIntList: 1},
			storages{pte.Constant: 1, pte.Planned: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := factsOf(parseFile(t, name)); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}
