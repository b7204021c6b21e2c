// Package tensor defines element types, dim orders, tensors, values, and typed views of their
// bytes.
//
// A [Tensor] is dense: its bytes contain exactly the product of its sizes in elements, ordered by
// its dim order (outermost dimension first). There are no strided views. Elements are
// little-endian, as in the .pte file.
package tensor
