package llm

import (
	"fmt"
	"math"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Arguments of quantized_moe_ffn.
const (
	moeX      = iota // [T, D]
	moeGate          // [E, D]
	moeBias          // [E], or empty
	moeW13           // [E, bytes]: packed [2F, D]
	moeW2            // [E, bytes]: packed [D, F]
	moeActive        // experts of a token
	moeExperts
	moeHidden // F
	moeDim    // D
	moeGroup
	moeBits
	moeScore
	moeRoute
	moeOut // [T, D]
)

// moeFFN is llama::quantized_moe_ffn.out, a mixture of experts. The router computes the scores x · gateᵀ of each
// token and selects the experts with the highest ones:
//
//	sigmoid: selects by sigmoid(score) + bias; the weights are route_scale · the sigmoids over their sum
//	softmax: the weights are the softmax of the selected scores
//
// An expert computes (silu(x·W1ᵀ) * x·W3ᵀ) · W2ᵀ with weights of 4 or 8 bits, in float32. Upstream's optimized build
// rounds activations to 8 bits.
func moeFFN(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mixture](c)
	if err := m.check(a); err != nil {
		return err
	}
	m.sizes = [2]int{m.tokens, m.dim}
	if err := kernels.ResizeOut(a, moeOut, m.sizes[:]); err != nil {
		return err
	}
	m.bind(c, a)
	clear(m.out)
	m.route()
	for e := range m.experts {
		m.expert(c, e)
	}
	return nil
}

// mixture is the state of a call.
type mixture struct {
	tokens, dim, hidden, experts, active int
	sigmoid                              bool
	scale                                float32
	sizes                                [2]int
	w13, w2                              packed
	x, gate, bias, out                   []float32
	bytes13, bytes2                      *tensor.Tensor

	scores, biased []float32 // tokens × experts: of the router, and what the choice is by
	chosen         []int32   // tokens × active
	weights        []float32 // tokens × active
	batch          []int     // indexes into chosen: the tokens of an expert that go together
	in, up, mid, y []float32 // of a batch: × dim, × 2·hidden, × hidden, × dim
	product        product
}

// maxTokens is the maximum number of tokens that an expert processes at a time.
const maxTokens = 64

func (m *mixture) check(a kernels.Args) error {
	for i, name := range [...]string{moeActive: "experts of a token", moeExperts: "experts", moeHidden: "hidden", moeDim: "dim", moeGroup: "group"} {
		if v := a[i].Int; name != "" && (v <= 0 || v > 1<<24) {
			return kernels.Badf(i, "a positive number of "+name, "%d", v)
		}
	}
	m.active, m.experts, m.hidden, m.dim = int(a.Int(moeActive)), int(a.Int(moeExperts)), int(a.Int(moeHidden)), int(a.Int(moeDim))
	if m.active > m.experts {
		return kernels.Badf(moeActive, fmt.Sprintf("at most %d", m.experts), "%d", m.active)
	}
	score := a.Str(moeScore)
	m.sigmoid, m.scale = score == "sigmoid", float32(a.Float(moeRoute))
	if !m.sigmoid && score != "softmax" {
		return kernels.Badf(moeScore, `"sigmoid" or "softmax"`, "%q", score)
	}
	if err := m.checkFloats(a); err != nil {
		return err
	}
	return m.checkPacked(a)
}

func (m *mixture) checkFloats(a kernels.Args) error {
	x, gate, bias := a.Tensor(moeX), a.Tensor(moeGate), a.Tensor(moeBias)
	for _, i := range [...]int{moeX, moeGate, moeBias, moeOut} {
		if t := a.Tensor(i); t.DType != tensor.Float32 || !t.IsContiguous() {
			return kernels.Badf(i, "a contiguous tensor of float32", "%v", t)
		}
	}
	if x.Rank() != 2 || x.Sizes[1] != m.dim {
		return kernels.Badf(moeX, fmt.Sprintf("[tokens, %d]", m.dim), "%v", x.Sizes)
	}
	if gate.Rank() != 2 || gate.Sizes[0] != m.experts || gate.Sizes[1] != m.dim {
		return kernels.Badf(moeGate, fmt.Sprintf("[%d %d]", m.experts, m.dim), "%v", gate.Sizes)
	}
	if n := bias.Numel(); n != 0 && (bias.Rank() != 1 || n != m.experts || !m.sigmoid) {
		return kernels.Badf(moeBias, fmt.Sprintf("none, or with sigmoid one for each of %d experts", m.experts), "%v", bias.Sizes)
	}
	m.tokens = x.Sizes[0]
	return nil
}

func (m *mixture) checkPacked(a kernels.Args) error {
	bits, group := a.Int(moeBits), int(a.Int(moeGroup))
	if bits != 4 && bits != 8 {
		return kernels.Badf(moeBits, "4 or 8", "%d", bits)
	}
	if group%packedRun != 0 || m.dim%group != 0 || m.hidden%group != 0 {
		return kernels.Badf(moeGroup, fmt.Sprintf("a multiple of %d that divides %d and %d", packedRun, m.dim, m.hidden), "%d", group)
	}
	m.w13 = packed{n: 2 * m.hidden, k: m.dim, group: group, bits: int(bits)}
	m.w2 = packed{n: m.dim, k: m.hidden, group: group, bits: int(bits)}
	for i, w := range [...]packed{m.w13, m.w2} {
		t := a.Tensor(moeW13 + i)
		if t.DType != tensor.Uint8 || t.Rank() != 2 || t.Sizes[0] != m.experts || !t.IsContiguous() {
			return kernels.Badf(moeW13+i, fmt.Sprintf("uint8[%d, bytes]", m.experts), "%v", t)
		}
		for e := range m.experts {
			if err := w.check(weightsOf(t, e)); err != nil {
				return kernels.Badf(moeW13+i, "weights in torchao's universal packing", "for expert %d: %v", e, err)
			}
		}
	}
	return nil
}

// weightsOf returns the bytes of one expert.
func weightsOf(t *tensor.Tensor, e int) []byte {
	return t.Data[e*t.Sizes[1] : (e+1)*t.Sizes[1]]
}

func (m *mixture) bind(c *kernels.Ctx, a kernels.Args) {
	m.x, m.gate = tensor.Data[float32](a.Tensor(moeX)), tensor.Data[float32](a.Tensor(moeGate))
	m.bias, m.out = tensor.Data[float32](a.Tensor(moeBias)), tensor.Data[float32](a.Tensor(moeOut))
	m.bytes13, m.bytes2 = a.Tensor(moeW13), a.Tensor(moeW2)
	t := m.tokens
	m.scores, m.biased = kernels.Scratch[float32](c, t*m.experts), kernels.Scratch[float32](c, m.experts)
	m.chosen, m.weights = kernels.Scratch[int32](c, t*m.active), kernels.Scratch[float32](c, t*m.active)
	n := min(t, maxTokens)
	m.in, m.y = kernels.Scratch[float32](c, n*m.dim), kernels.Scratch[float32](c, n*m.dim)
	m.up, m.mid = kernels.Scratch[float32](c, n*2*m.hidden), kernels.Scratch[float32](c, n*m.hidden)
	m.product.tile = max(tileSize(m.w13), tileSize(m.w2))
	m.product.tiles = kernels.Scratch[float32](c, m.product.tile*c.Threads())
}

// route chooses the experts of every token and their weights.
func (m *mixture) route() {
	for t := range m.tokens {
		scores := m.scores[t*m.experts : (t+1)*m.experts]
		for e := range scores {
			scores[e] = simd.Dot(m.x[t*m.dim:(t+1)*m.dim], m.gate[e*m.dim:])
			if m.sigmoid {
				scores[e] = sigmoid(scores[e])
			}
		}
		by := scores
		if len(m.bias) > 0 {
			by = m.biased
			for e := range by {
				by[e] = scores[e] + m.bias[e]
			}
		}
		chosen, weights := m.chosen[t*m.active:(t+1)*m.active], m.weights[t*m.active:(t+1)*m.active]
		choose(chosen, by)
		for i, e := range chosen {
			weights[i] = scores[e]
		}
		if m.sigmoid {
			share(weights, m.scale)
		} else {
			simd.ScaleShift(weights, weights, 1/simd.ExpSum(weights, weights, simd.Max(weights)), 0)
		}
	}
}

// share scales weights to the sum scale.
func share(weights []float32, scale float32) {
	simd.ScaleShift(weights, weights, scale/max(simd.Sum(weights), 0x1p-126), 0)
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// choose writes the indices of the highest scores to best, the highest first; of equal scores the first one wins. NaN
// is lower than any number.
func choose(best []int32, scores []float32) {
	for i := range best {
		best[i] = -1
		for e := range scores {
			if !slices.Contains(best[:i], int32(e)) && (best[i] < 0 || above(scores[e], scores[best[i]])) {
				best[i] = int32(e)
			}
		}
	}
}

func above(x, y float32) bool { return x > y || y != y && x == x }

// expert adds the output of expert e to the tokens that selected it.
func (m *mixture) expert(c *kernels.Ctx, e int) {
	m.batch = m.batch[:0]
	for i, v := range m.chosen {
		if v != int32(e) {
			continue
		}
		if m.batch = append(m.batch, i); len(m.batch) == maxTokens {
			m.feed(c, e)
		}
	}
	if len(m.batch) > 0 {
		m.feed(c, e)
	}
}

// feed runs the batch through expert e and empties it.
func (m *mixture) feed(c *kernels.Ctx, e int) {
	for r, i := range m.batch {
		copy(m.in[r*m.dim:(r+1)*m.dim], m.x[i/m.active*m.dim:])
	}
	m.product.run(c, m.w13, weightsOf(m.bytes13, e), m.in, m.up, len(m.batch))
	for r := range m.batch {
		up, gate := m.up[2*r*m.hidden:][:m.hidden], m.up[(2*r+1)*m.hidden:][:m.hidden]
		mid := m.mid[r*m.hidden:][:m.hidden]
		simd.Sigmoid(mid, up)
		simd.Mul(mid, mid, up)
		simd.Mul(mid, mid, gate)
	}
	m.product.run(c, m.w2, weightsOf(m.bytes2, e), m.mid, m.y, len(m.batch))
	for r, i := range m.batch {
		simd.Axpy(m.out[i/m.active*m.dim:][:m.dim], m.y[r*m.dim:], m.weights[i])
	}
	m.batch = m.batch[:0]
}

// product multiplies rows of x [M, K] by the transpose of a packed weight [N, K].
type product struct {
	packed
	bytes  []byte
	x, y   []float32
	m      int
	blocks int       // of eight columns, dequantised together
	tiles  []float32 // per thread: dequantised columns, and memory for their product
	tile   int       // elements of a thread's
}

// maxBlocks is the maximum number of blocks of eight columns in one product of many rows.
const maxBlocks = 4

// tileSize returns the number of elements that a thread needs for a weight.
func tileSize(w packed) int {
	blocks := min(maxBlocks, (w.n+packedColumns-1)/packedColumns)
	return blocks*packedColumns*w.k + gemm.TransposedWork(w.k)
}

func (p *product) run(c *kernels.Ctx, w packed, bytes []byte, x, y []float32, m int) {
	p.packed, p.bytes, p.x, p.y, p.m = w, bytes, x, y, m
	if p.blocks = min(maxBlocks, (w.n+packedColumns-1)/packedColumns); m <= gemm.FewRows {
		p.blocks = 1
	}
	columns := p.blocks * packedColumns
	c.Parallel((w.n+columns-1)/columns, cpu.Grain(columns*w.k*(m+2), macCost), p)
}

// Range computes groups of blocks [lo, hi).
func (p *product) Range(worker, lo, hi int) {
	columns := p.blocks * packedColumns
	tile, work := p.tiles[worker*p.tile:][:columns*p.k], p.tiles[worker*p.tile+columns*p.k:]
	for j := lo * columns; j < min(hi*columns, p.n); j += columns {
		n := min(columns, p.n-j)
		for b := 0; b < n; b += packedColumns {
			p.columns(tile[b*p.k:], p.bytes, (j+b)/packedColumns)
		}
		gemm.MulTransposed(p.m, n, p.k, p.x, p.k, tile, p.k, p.y[j:], p.n, work)
	}
}
