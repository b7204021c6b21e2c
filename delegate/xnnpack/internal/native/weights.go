package native

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// weights are the packed weights of an image's runtimes. XNNPACK packs node by node, always in the
// same order, so all runtimes have the entries of the first one: the n-th request of a later
// runtime returns the n-th entry, if its key is the same. Keys alone do not distinguish filters
// with equal bytes and different scales.
type weights struct {
	cache   *xnn.StoreCache
	entries []entry
	next    int    // entry of the next request
	spare   []byte // reserved and not yet used
	slab    *slab  // contains spare, its next bytes; or nil
	want    int64  // bytes of the constants to pack: the packed ones need at least as many
	limit   int64  // in bytes, of all packed weights; 0 for none
	over    bool   // a request exceeded the limit

	constants map[xnn.Address]graph.Releasable // may be released once they are packed
	release   func([]byte) bool                // releases constants; nil if none may be released
	released  bool                             // constants were released
	unscaled  []*graph.Value                   // constants whose scales were released
	sealed    bool                             // the first runtime exists: if gone is set too, nothing can be packed any more
	refused   bool                             // a request to pack failed because of that
	rehearsal []byte                           // stands for packed weights while a runtime is created to see whether it can be
	pin       runtime.Pinner
	Blocks    []*block
	mapping   *cpu.Mapping // of the file that contains the entries
}

type entry struct {
	key  xnn.WeightsKey
	at   xnn.Address
	Data []byte // at that address
}

// newWeights returns empty packed weights, for constants of want bytes in total.
func newWeights(want, limit int64) *weights {
	w := &weights{want: want, limit: limit}
	w.cache = xnn.NewWeightsCache(w)
	return w
}

// serve makes a call that creates another runtime, and returns its error or why packing failed. The caller must hold the image's
// lock.
func (w *weights) serve(create func(xnn.WeightsCache) error) error {
	w.next = 0
	err := create(w.cache.WeightsCache)
	if w.released && w.sealed || w.rehearsal != nil { // weights that were packed again, or for a rehearsal
		w.pin.Unpin()
		w.spare = nil
	}
	switch {
	case w.over:
		return delegate.Errorf(graph.ID, delegate.ErrMemory, "", "packed weights of more than %d bytes, which the limit leaves", w.limit)
	case w.refused:
		return delegate.Errorf(graph.ID, delegate.ErrDevice, "", "the library packs in another order than before; the filters were given back")
	case err != nil:
		return graph.Unsupported("", "%w", err)
	}
	return nil
}

// LookUp implements xnn.WeightsStore. If an entry is found, XNNPACK makes no further calls for it,
// except Insert without data.
func (w *weights) LookUp(key xnn.WeightsKey) xnn.Address {
	if w.rehearsal != nil {
		return xnn.AddressOf(w.rehearsal)
	}
	if w.next < len(w.entries) && w.entries[w.next].key == key {
		w.next++
		return w.entries[w.next-1].at
	}
	return 0
}

// Reserve implements xnn.WeightsStore.
func (w *weights) Reserve(size uint) xnn.Address {
	if w.released && w.sealed {
		return w.reserveAgain(size)
	}
	if size == 0 || size > math.MaxInt/4 || w.limit > 0 && w.Bytes()+int64(size) > w.limit {
		w.over = size > 0
		return 0
	}
	if w.spare = w.slab.next(int(size)); w.spare == nil {
		w.allocate(int64(size))
	}
	return xnn.AddressOf(w.spare)
}

// reserveAgain returns memory for weights that are packed already. The library does not look up the
// filters of transposed convolutions, but packs them for every runtime. Insert ignores what it packs from a
// released filter.
func (w *weights) reserveAgain(size uint) xnn.Address {
	if w.next >= len(w.entries) || uint(len(w.entries[w.next].Data)) != size {
		w.refused = true
		return 0
	}
	w.pin.Unpin()
	w.spare = tensor.AlignedBytes(int(size))
	w.pin.Pin(&w.spare[0])
	return xnn.AddressOf(w.spare)
}

// repacked returns the entry of weights that were packed again from a released filter.
func (w *weights) repacked(key xnn.WeightsKey, at xnn.Address) xnn.Address {
	if w.next >= len(w.entries) || w.entries[w.next].key != key {
		w.refused = true
		return at // of a runtime that is not used
	}
	w.next++
	return w.entries[w.next-1].at
}

// allocate reserves n bytes of a new slab, or of Go's heap if they are few.
func (w *weights) allocate(n int64) {
	w.slab.release()
	need := n + tensor.Padding
	rest := w.want - w.Bytes()
	if w.slab = newSlab(max(need, rest+rest/slabMargin), max(n, rest)); w.slab != nil {
		w.spare = w.slab.next(int(n))
		return
	}
	w.pin.Unpin()
	w.spare = tensor.AlignedBytes(int(n))
	w.pin.Pin(&w.spare[0])
}

// slabMargin is the inverse of the fraction by which packed constants are expected to be larger.
const slabMargin = 8

// Insert implements xnn.WeightsStore.
func (w *weights) Insert(key xnn.WeightsKey, at xnn.Address, size uint) xnn.Address {
	switch {
	case w.rehearsal != nil:
		return xnn.AddressOf(w.rehearsal)
	case at == 0 && w.next > 0:
		return w.entries[w.next-1].at
	case w.released && w.sealed:
		return w.repacked(key, at)
	}
	if w.next < len(w.entries) && w.entries[w.next].key == key && w.entries[w.next].agrees(w.spare[:size]) {
		w.next++
		return w.entries[w.next-1].at
	}
	b := blocks.share(w.spare[:size], w.slab)
	if b.at == at {
		w.spare = nil
	}
	w.Blocks = append(w.Blocks, b)
	w.entries = append(w.entries, entry{key, b.at, b.data})
	w.next = len(w.entries)
	w.releaseConstant(key.Kernel)
	return b.at
}

// seal ends packing. It releases the constants that are still there, and returns those whose scales are released: they have
// stand-ins.
func (w *weights) seal(release func([]byte) bool) (unscaled []*graph.Value) {
	w.sealed = true
	if w.release == nil {
		w.release = release
		for i := range w.entries {
			w.releaseConstant(w.entries[i].key.Kernel)
		}
	}
	for _, x := range w.unscaled {
		x.Quant.Blocks = placeholderScales(len(x.Quant.Blocks))
	}
	unscaled, w.unscaled = w.unscaled, nil
	return unscaled
}

// releaseConstant releases the memory of a constant that was packed.
func (w *weights) releaseConstant(at xnn.Address) {
	c, ok := w.constants[at]
	if !ok || w.release == nil || !w.release(c.Value.Data) {
		return
	}
	w.released = true
	if len(c.Scales) > 0 && w.release(c.Scales) {
		w.unscaled = append(w.unscaled, c.Value)
	}
}

// Bytes returns the size of all packed weights.
func (w *weights) Bytes() (n int64) {
	for _, b := range w.Blocks {
		n += int64(len(b.data))
	}
	if w.mapping != nil {
		n += int64(len(w.mapping.Bytes()))
	}
	return n
}

// close frees the weights and returns their size.
func (w *weights) close() (packed int64) {
	packed = w.Bytes()
	w.cache.Delete()
	for _, b := range w.Blocks {
		blocks.release(b)
	}
	w.Blocks = nil
	w.slab.release()
	w.slab = nil
	if w.mapping != nil {
		w.mapping.Close()
	}
	w.pin.Unpin()
	return packed
}

// block is the packed weights of one node, or of several nodes with equal ones.
type block struct {
	data []byte
	at   xnn.Address
	key  uint64 // its index in sharedBlocks.by
	full uint64 // hash of all bytes, 0 until it is needed
	uses int
	slab *slab // contains data; nil for Go's heap
	pin  runtime.Pinner
}

// sharedBlocks holds every block of the process once, for all images, methods and nodes that use
// it.
type sharedBlocks struct {
	mu   sync.Mutex
	seed maphash.Seed
	by   map[uint64][]*block // by sample, the hash of some bytes
}

// blocks are the blocks of the process.
var blocks = sharedBlocks{seed: maphash.MakeSeed(), by: make(map[uint64][]*block)}

// share returns the block with these bytes: an existing one, or a new one that owns data. If from
// is not nil, data must be its next bytes.
func (s *sharedBlocks) share(data []byte, from *slab) *block {
	key := s.sample(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &block{data: data, at: xnn.AddressOf(data), key: key, uses: 1, slab: from}
	for _, other := range s.by[key] {
		if s.hash(other) == s.hash(b) && bytes.Equal(other.data, data) {
			other.uses++
			return other
		}
	}
	if from != nil {
		from.allocate(len(data))
	} else {
		b.pin.Pin(&data[0])
	}
	s.by[key] = append(s.by[key], b)
	return b
}

// sample hashes the size, the first and the last bytes: enough to distinguish most blocks, at
// almost no cost.
func (s *sharedBlocks) sample(data []byte) uint64 {
	const part = 1024
	var h maphash.Hash
	h.SetSeed(s.seed)
	fmt.Fprint(&h, len(data))
	h.Write(data[:min(part, len(data))])
	h.Write(data[max(0, len(data)-part):])
	return h.Sum64()
}

func (s *sharedBlocks) hash(b *block) uint64 {
	if b.full == 0 {
		b.full = max(maphash.Bytes(s.seed, b.data), 1)
	}
	return b.full
}

func (s *sharedBlocks) release(b *block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.uses--; b.uses > 0 {
		return
	}
	b.pin.Unpin()
	b.slab.release()
	list := s.by[b.key]
	if at := slices.Index(list, b); at >= 0 {
		list = slices.Delete(list, at, at+1)
	}
	if len(list) == 0 {
		delete(s.by, b.key)
	} else {
		s.by[b.key] = list
	}
}

// slab is memory outside of Go's heap from which packed weights are allocated one after the other.
// Its large pages cause far fewer page faults, and it does not trigger garbage collection. It is
// unmapped when the last user releases it.
type slab struct {
	pages *cpu.Mapping
	free  []byte
	uses  atomic.Int32
}

// newSlab maps size bytes, of which at least the first dense ones will be used: only these get
// large pages. It returns nil, from which nothing can be allocated, if size is small or the system
// has no more pages. The slab has one user.
func newSlab(size, dense int64) *slab {
	if size < graph.OwnPages {
		return nil
	}
	pages, err := cpu.MapMemory(size)
	if err != nil {
		return nil
	}
	b := pages.Bytes()
	cpu.UseSmallPages(b[min(dense, size):])
	s := &slab{pages: pages, free: b}
	s.uses.Store(1)
	runtime.AddCleanup(s, (*cpu.Mapping).Close, pages)
	return s
}

// next returns the next n bytes, followed by padding, or nil if there are fewer. It returns the
// same bytes until take. A nil slab has none.
func (s *slab) next(n int) []byte {
	if s == nil || n > len(s.free)-tensor.Padding {
		return nil
	}
	return s.free[:n:n]
}

// allocate allocates the next n bytes and adds a user to the slab.
func (s *slab) allocate(n int) {
	size := graph.RoundUp(n+tensor.Padding, tensor.Alignment)
	s.free = s.free[min(size, len(s.free)):]
	s.uses.Add(1)
}

// release removes a user. It does nothing on a nil slab.
func (s *slab) release() {
	if s != nil && s.uses.Add(-1) == 0 {
		s.pages.Close()
	}
}

// The memory of filters is released once the library has packed them. If they are large, each is
// released before the next is packed, so that at most one filter at a time is in memory twice.
// That requires that the filter is not read again: the library
// packs for all runtimes of an image at once, the Go engine never runs what the native one does,
// and no other node has the filter.

// keptBytes is the size of filters that may be in memory twice while the library creates the first runtime: the
// Go engine can run the graph if that fails. Tests set it.
var keptBytes int64 = 64 << 20

// placeholderScales returns n group scales, all 1. The library reads the scales of every filter that is
// defined, although it uses the packed filter unchanged.
func placeholderScales(n int) []uint16 {
	placeholders.Lock()
	defer placeholders.Unlock()
	if len(placeholders.ones) < n {
		placeholders.ones = slices.Repeat([]uint16{0x3f80}, n) // bfloat16
	}
	return placeholders.ones[:n:n]
}

var placeholders struct {
	sync.Mutex
	ones []uint16
}

// staysNative reports whether the library supports the graph at all sizes up to the declared ones
// if it supports it at those.
func staysNative(g *graph.Graph) bool {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if typeOf(n).bySize || n.Type.Tag == graph.TagFullyConnected && n.Flags&graph.FlagReshape2D != 0 {
			return false
		}
	}
	return true
}
