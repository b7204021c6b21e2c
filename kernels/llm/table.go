// Package llm (no compatibility promise) contains the custom operators that ExecuTorch's exporter uses in language
// models: attention over a key/value cache, updates of that cache, linear attention, Hadamard transforms, mixtures of
// experts, and tiling of images.
package llm

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// Ops is the table of this package's operators.
func Ops() []kernels.Op { return ops }

var ops = kernels.Pure([]kernels.Op{
	{
		Schema: "llama::update_cache.out(Tensor value, Tensor(a!) cache, SymInt start_pos, *, Tensor(b!) out)",
		Func:   updateCache, Indexes: []kernels.Index{{Tensor: 1, At: 2, Dim: -2}}, Halves: []int{1}, DTypes: "any; cache also float16 of float32", Family: kernels.Exact, Note: "out is a placeholder and becomes zeros",
	},
	{
		Schema: "llama::update_cache_with_indices.out(Tensor value, Tensor(a!) cache, SymInt start_pos, Tensor indices, *, Tensor(b!) out)",
		Func:   updateCacheAt, Halves: []int{1}, DTypes: "any; cache also float16 of float32; indices int64", Family: kernels.Exact, Note: "start_pos is not looked at; out is a placeholder and becomes zeros",
	},
	{
		Schema: "llama::custom_sdpa.out(Tensor query, Tensor key, Tensor value, SymInt start_pos, Tensor? attn_mask=None, float drpout_p=0.0, bool is_causal=False, float? scale=None, *, Tensor(a!) out)",
		Func:   customSDPA, Indexes: []kernels.Index{{Tensor: 1, At: 3, Dim: -2, Unless: 4}}, Halves: []int{1, 2}, DTypes: floatTypes + "; key and value also float16 of float32", Family: kernels.Loose, Note: "computes in float32; dropout is not looked at",
	},
	{
		Schema: "llama::sdpa_with_kv_cache.out(Tensor query, Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, SymInt start_pos, SymInt seq_len, Tensor? attn_mask=None, float drpout_p=0.0, bool is_causal=False, float? scale=None, *, Tensor(c!) out)",
		Func:   sdpaWithCache, Indexes: []kernels.Index{{Tensor: 3, At: 5, Dim: -2}}, Halves: []int{3, 4}, DTypes: floatTypes + "; caches also float16 of float32", Family: kernels.Loose, Note: "computes in float32; dropout is not looked at",
	},
	{
		Schema: "llama::custom_quantized_sdpa.out(Tensor query, Tensor key, Tensor value, SymInt start_pos, Tensor? attn_mask=None, float drpout_p=0.0, bool is_causal=False, float? scale=None, Tensor? q_zero_points=None, Tensor? q_scales=None, Tensor? k_zero_points=None, Tensor? k_scales=None, Tensor? v_zero_points=None, Tensor? v_scales=None, bool is_seq_at_dim_2=False, *, Tensor(a!) out)",
		Func:   quantizedSDPA, DTypes: "int8 → " + floatTypes + "; " + floatTypes, Family: kernels.Loose, Note: "computes in float32; dropout is not looked at",
	},
	{
		Schema: "llama::gated_delta_rule.out(Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor initial_state, *, Tensor(a!) out, Tensor(b!) final_state_out)",
		Func:   gatedDeltaRule, DTypes: "float32", Family: kernels.Loose,
	},
	{
		Schema: "llama::channelwise_gated_delta_rule.out(Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor initial_state, *, Tensor(a!) out, Tensor(b!) final_state_out)",
		Func:   gatedDeltaRule, DTypes: "float32", Family: kernels.Loose, Note: "the earlier name of gated_delta_rule",
	},
	{
		Schema: "llama::fast_hadamard_transform.out(Tensor mat, *, Tensor(a!) out)",
		Func:   hadamard, Flow: opclass.Inner1, DTypes: "float32, float64, float16", Family: kernels.Sum, Note: "the last dimension is a power of two, or 28 times one",
	},
	{
		Schema: "llama::quantized_moe_ffn.out(Tensor x, Tensor gate_weight, Tensor expert_bias, Tensor packed_w13, Tensor packed_w2, int num_activated_experts, int num_experts, int hidden_dim, int dim, int group_size, int weight_nbit, str score_func, float route_scale, *, Tensor(a!) out)",
		Func:   moeFFN, DTypes: "float32; packed weights uint8", Family: kernels.Loose, Note: "weights of 4 or 8 bits in torchao's universal packing; activations stay float32",
	},
	{
		Schema: "llama::fallback.out(Tensor input, *, Tensor(a!) output)",
		Func:   fallback, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: "any", Family: kernels.Exact,
	},
	{
		Schema: "preprocess::tile_crop.out(Tensor input, int tile_size, *, Tensor(a!) out)",
		Func:   tileCrop, Moves: true, DTypes: "any", Family: kernels.Exact,
	},
})
