// Package tensor holds what everything above it computes on: element types, dim
// orders, tensors, values and the typed views of their bytes.
//
// A [Tensor] is dense: its bytes hold exactly the product of its sizes, laid out
// in the order that its dim order names (outermost dimension first). There are no
// strided views. Element bytes are little-endian, as in the .pte file.
package tensor
