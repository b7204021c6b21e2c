package pack

// Align returns the first multiple of an alignment from n on, which is not negative.
func Align[T int | int64 | uint32 | uint64](n, alignment T) T {
	return (n + alignment - 1) / alignment * alignment
}

// Grow returns a slice of n elements, in the memory of s if that is large enough. Their values are not specified.
func Grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
