package llm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// pack writes codes [N, K] and scales [N, K/group] in torchao's universal packing.
func (p packed) pack(codes []int8, scales []float32) []byte {
	b := make([]byte, 0, p.size())
	for i := range 16 {
		word := int32(0)
		if words := p.headerWords(); i < len(words) {
			word = words[i]
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(word))
	}
	groups := p.k / p.group
	for n := 0; n < p.n; n += packedColumns {
		for g := range groups {
			sums := [packedColumns]int32{}
			for at := g * p.group; at < (g+1)*p.group; at += packedRun {
				tile := [packedTile]int8{}
				for half := range 2 {
					for c := range packedColumns {
						for j := range 8 {
							if n+c < p.n {
								v := codes[(n+c)*p.k+at+half*8+j]
								tile[half*64+c*8+j] = v
								sums[c] += int32(v)
							}
						}
					}
				}
				b = p.appendTile(b, tile)
			}
			for c := range packedColumns {
				scale := float32(0)
				if n+c < p.n {
					scale = scales[(n+c)*groups+g]
				}
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scale))
			}
			for _, s := range sums {
				b = binary.LittleEndian.AppendUint32(b, uint32(s))
			}
		}
	}
	return b
}

func (p packed) appendTile(b []byte, tile [packedTile]int8) []byte {
	if p.bits == 8 {
		for _, v := range tile {
			b = append(b, byte(v))
		}
		return b
	}
	for i := 0; i < packedTile; i += 32 {
		for j := range 16 {
			b = append(b, byte(tile[i+j]+8)|byte(tile[i+j+16]+8)<<4)
		}
	}
	return b
}

// randomWeight makes packed bytes and the matrix that they stand for.
func randomWeight(r *rand.Rand, p packed) (bytes []byte, w []float64) {
	codes, scales := make([]int8, p.n*p.k), make([]float32, p.n*p.k/p.group)
	for i := range scales {
		scales[i] = float32(r.IntN(9)+1) / 64
	}
	w = make([]float64, len(codes))
	for i := range codes {
		codes[i] = int8(r.IntN(1<<p.bits) - 1<<(p.bits-1))
		w[i] = float64(codes[i]) * float64(scales[i/p.group])
	}
	return p.pack(codes, scales), w
}

func TestPackedWeightsReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range []packed{{n: 8, k: 16, group: 16, bits: 4}, {n: 11, k: 96, group: 32, bits: 4}, {n: 3, k: 64, group: 16, bits: 8}} {
		bytes, want := randomWeight(r, p)
		if err := p.check(bytes); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
		if len(bytes) != p.size() {
			t.Errorf("%+v: %d bytes packed, size %d", p, len(bytes), p.size())
		}
		for n := range p.n {
			tile := make([]float32, packedColumns*p.k)
			p.columns(tile, bytes, n/packedColumns)
			for k := range p.k {
				if got := tile[n%packedColumns*p.k+k]; float64(got) != want[n*p.k+k] {
					t.Fatalf("%+v: element [%d %d]: got %v, want %v", p, n, k, got, want[n*p.k+k])
				}
			}
		}
	}
}

// moeCase makes a call and what it must give, computed in float64.
func moeCase(name string, tokens, experts, active, dim, hidden, bits int, score string, bias bool) kerneltest.Case {
	r := rand.New(rand.NewPCG(uint64(tokens), uint64(bits)))
	w13, w2 := packed{n: 2 * hidden, k: dim, group: 16, bits: bits}, packed{n: dim, k: hidden, group: 16, bits: bits}
	x, gate, shift := random(1, f32, tokens, dim), random(2, f32, experts, dim), tensor.New(f32, 0)
	for i := range tensor.Data[float32](x) {
		tensor.Data[float32](x)[i] /= 8
	}
	if bias {
		shift = random(3, f32, experts)
	}
	var b13, b2 []byte
	var up, down [][]float64
	for range experts {
		b, w := randomWeight(r, w13)
		b13, up = append(b13, b...), append(up, w)
		b, w = randomWeight(r, w2)
		b2, down = append(b2, b...), append(down, w)
	}
	out := make([]float64, tokens*dim)
	for t := range tokens {
		in := values(x)[t*dim : (t+1)*dim]
		for e, weight := range routeNaive(in, values(gate), values(shift), experts, active, score) {
			mid := make([]float64, hidden)
			for j := range mid {
				h := dotNaive(in, up[e][j*dim:])
				mid[j] = h / (1 + math.Exp(-h)) * dotNaive(in, up[e][(hidden+j)*dim:])
			}
			for d := range dim {
				out[t*dim+d] += weight * dotNaive(mid, down[e][d*hidden:])
			}
		}
	}
	return kerneltest.Case{Name: name, Op: "llama::quantized_moe_ffn.out", Scale: 100, Args: []any{x, gate, shift,
		tensor.Of(b13, experts, len(b13)/experts), tensor.Of(b2, experts, len(b2)/experts), active, experts, hidden, dim, 16, bits, score, 2.5},
		Want: []any{of(f32, []int{tokens, dim}, out...)}}
}

func dotNaive(x, y []float64) (s float64) {
	for i, v := range x {
		s += v * y[i]
	}
	return s
}

// routeNaive gives the weight of each chosen expert, scaled by 2.5 for sigmoid.
func routeNaive(x, gate, bias []float64, experts, active int, score string) map[int]float64 {
	scores, order := make([]float64, experts), make([]int, experts)
	for e := range scores {
		order[e] = e
		scores[e] = dotNaive(x, gate[e*len(x):])
		if score == "sigmoid" {
			scores[e] = 1 / (1 + math.Exp(-scores[e]))
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := scores[i], scores[j]
		if len(bias) > 0 {
			x, y = x+bias[i], y+bias[j]
		}
		if x > y {
			return -1
		}
		return 1
	})
	weights, sum := map[int]float64{}, 0.0
	for _, e := range order[:active] {
		w := scores[e] * 1.0
		if score == "softmax" {
			w = math.Exp(scores[e])
		}
		weights[e] = w
		sum += w
	}
	for e := range weights {
		weights[e] /= sum
		if score == "sigmoid" {
			weights[e] *= 2.5
		}
	}
	return weights
}

func TestMixtureOfExperts(t *testing.T) {
	good := moeCase("sigmoid, a bias", 5, 4, 2, 32, 48, 4, "sigmoid", true)
	refused := func(name string, arg int, v any, says string) kerneltest.Case {
		c := good
		c.Name, c.Args, c.Outs, c.Refused = name, slices.Clone(good.Args), good.Want, says
		c.Args[arg] = v
		return c
	}
	header := tensor.New(tensor.Uint8, good.Args[moeW2].(*tensor.Tensor).Sizes...)
	kerneltest.Run(t, set, good,
		moeCase("sigmoid", 1, 4, 1, 16, 16, 8, "sigmoid", false),
		moeCase("softmax", 3, 8, 3, 32, 16, 4, "softmax", false),
		moeCase("all experts", 2, 2, 2, 16, 32, 8, "softmax", false),
		moeCase("several batches", 150, 2, 1, 16, 16, 4, "sigmoid", false),
		refused("unknown score", moeScore, "max", `want "sigmoid" or "softmax"`),
		refused("more active than there are", moeActive, 5, "at most 4"),
		refused("group that does not divide", moeGroup, 32, "divides 32 and 48"),
		refused("group of half a tile", moeGroup, 8, "multiple of 16"),
		refused("3 bits", moeBits, 3, "4 or 8"),
		refused("8 bits in a packing of 4", moeBits, 8, "bytes"),
		refused("no header", moeW2, header, "word 0 of the header 0"),
		refused("hidden too large", moeHidden, 96, "argument 3"),
		refused("hidden beyond reason", moeHidden, int64(math.MaxInt64), "argument 7"),
		refused("bias with softmax", moeScore, "softmax", "argument 2"),
	)
	kerneltest.NoAllocs(t, set, good)
}
