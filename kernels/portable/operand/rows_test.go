package operand_test

import (
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestRows(t *testing.T) {
	c := kernels.NewCtx(nil)
	x := tensor.Make(tensor.Int8, []int{2, 3}, []uint8{1, 0}, tensor.Static)
	x.Bind([]byte{0, 3, 1, 4, 2, 5})
	if got, want := operand.Rows(c, x), []byte{0, 1, 2, 3, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("rows: got %v, want %v", got, want)
	}
	row := tensor.Of([]int8{7, 8, 9}, 3)
	if got, want := operand.Expand(c, row, []int{2, 3}), []byte{7, 8, 9, 7, 8, 9}; !slices.Equal(got, want) {
		t.Errorf("expanded row: got %v, want %v", got, want)
	}
	y := tensor.Make(tensor.Int8, []int{2, 3}, []uint8{1, 0}, tensor.Static)
	y.Bind(make([]byte, 6))
	to := operand.OutRows(c, y)
	copy(to, []byte{0, 1, 2, 3, 4, 5})
	operand.StoreRows(c, y, to)
	if !slices.Equal(y.Data, x.Data) {
		t.Errorf("stored: got %v, want %v", y.Data, x.Data)
	}
}
