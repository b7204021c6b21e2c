package llm

import (
	"fmt"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// updateCache is llama::update_cache.out: it copies value [B, S, H, D] to cache [B, Smax, H, D] at sequence positions
// start_pos, start_pos+1, …
func updateCache(_ *kernels.Ctx, a kernels.Args) error {
	if err := checkUpdate(a, 0, 1, 2); err != nil {
		return err
	}
	clear(a.Tensor(3).Data)
	return put(a, 0, 1, int(a.Int(2)))
}

// updateCacheAt is llama::update_cache_with_indices.out: it copies token s of batch b to sequence position indices[b,
// s].
func updateCacheAt(_ *kernels.Ctx, a kernels.Args) error {
	value, cache, indices := a.Tensor(0), a.Tensor(1), a.Tensor(3)
	if err := checkCache(a, 0, 1); err != nil {
		return err
	}
	if indices.DType != tensor.Int64 || indices.Rank() != 2 || !indices.IsContiguous() ||
		indices.Sizes[0] != value.Sizes[0] || indices.Sizes[1] != value.Sizes[1] {
		return kernels.Badf(3, fmt.Sprintf("int64 indices %v", value.Sizes[:2]), "%v", indices)
	}
	at := tensor.Data[int64](indices)
	for _, i := range at {
		if i < 0 || i >= int64(cache.Sizes[1]) {
			return kernels.Badf(3, fmt.Sprintf("indices in [0, %d)", cache.Sizes[1]), "%d", i)
		}
	}
	clear(a.Tensor(4).Data)
	for i, pos := range at {
		if err := putRows(a, 0, 1, i, i/value.Sizes[1]*cache.Sizes[1]+int(pos), 1); err != nil {
			return err
		}
	}
	return nil
}

// checkCache checks that value argument v fits cache argument c but for its length.
func checkCache(a kernels.Args, v, c int) error {
	value, cache := a.Tensor(v), a.Tensor(c)
	for _, i := range [...]int{v, c} {
		if t := a.Tensor(i); t.Rank() != 4 || !t.IsContiguous() {
			return kernels.Badf(i, "a contiguous tensor of rank 4", "%v with dim order %v", t, t.DimOrder)
		}
	}
	for _, d := range [...]int{0, 2, 3} {
		if !keeps(cache.DType, value.DType) || value.Sizes[d] != cache.Sizes[d] {
			return kernels.Badf(v, fmt.Sprintf("but for dimension 1 as the cache, %v", cache), "%v", value)
		}
	}
	return nil
}

// checkUpdate checks that value argument v fits into cache argument c at the
// position in argument pos.
func checkUpdate(a kernels.Args, v, c, pos int) error {
	if err := checkCache(a, v, c); err != nil {
		return err
	}
	room := a.Tensor(c).Sizes[1] - a.Tensor(v).Sizes[1]
	if p := a.Int(pos); p < 0 || p > int64(room) {
		return kernels.Badf(pos, fmt.Sprintf("a position in [0, %d]: %d tokens into %d places", room, a.Tensor(v).Sizes[1], a.Tensor(c).Sizes[1]), "%d", p)
	}
	return nil
}

// keeps reports whether a cache keeps the numbers of a call.
func keeps(cache, numbers tensor.DType) bool {
	return cache == numbers || cache == tensor.Float16 && numbers == tensor.Float32
}

// put copies value argument v to cache argument c at a position.
func put(a kernels.Args, v, c, pos int) error {
	value, cache := a.Tensor(v), a.Tensor(c)
	for b := range value.Sizes[0] {
		if err := putRows(a, v, c, b*value.Sizes[1], b*cache.Sizes[1]+pos, value.Sizes[1]); err != nil {
			return err
		}
	}
	return nil
}

// putRows copies n tokens of value argument v, the first of which is from, to those of cache argument c from to on. Numbers that
// float16 does not have are an error: attention would make NaN of them.
func putRows(a kernels.Args, v, c, from, to, n int) error {
	value, cache := a.Tensor(v), a.Tensor(c)
	token := value.Sizes[2] * value.Sizes[3]
	src, dst := value.Data[from*token*value.DType.Size():], cache.Data[to*token*cache.DType.Size():][:n*token*cache.DType.Size()]
	if value.DType == cache.DType {
		copy(dst, src)
		return nil
	}
	x := tensor.View[float32](src)[:n*token]
	if m := max(simd.Max(x), -simd.Min(x)); m > maxHalf {
		return kernels.Badf(v, fmt.Sprintf("numbers up to %v, for the cache is float16", maxHalf), "%v", m)
	}
	tensor.Storer[float32](tensor.Float16)(dst, x)
	return nil
}

// maxHalf is the largest number of float16.
const maxHalf = 65504
