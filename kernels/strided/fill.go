package strided

import "github.com/etrun-go/etrun/internal/simd"

// Fill sets every element of row.
func Fill[T any](row []T, v T) {
	if f, ok := any(row).([]float32); ok {
		simd.Fill(f, any(v).(float32))
		return
	}
	n := min(len(row), 16)
	for i := range row[:n] {
		row[i] = v
	}
	if n < len(row) {
		Repeat(row, n)
	}
}

// Repeat copies the first n elements of row all over it: first up to a block that fits the cache, then that block.
func Repeat[T any](row []T, n int) {
	const block = 8 << 10
	for n < min(len(row), block) {
		n += copy(row[n:], row[:n])
	}
	for i := n; i < len(row); {
		i += copy(row[i:], row[:n])
	}
}
