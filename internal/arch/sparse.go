package arch

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// DeepSeek-V3.2 (DeepSeek-AI, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
// 2025) has DeepSeek-V3's layers, whose attention is sparse: an indexer chooses the positions that
// a token attends to. GLM-5 (GLM-5 Team, "GLM-5: from Vibe Coding to Agentic Engineering", 2026)
// has such layers, too; in later checkpoints some layers attend to the positions that an earlier
// layer has chosen (arXiv 2603.12201). The layers that predict further tokens are omitted.
func init() {
	register(architecture{
		title: "DeepSeek-V3.2", about: "DeepSeek-V3's layers, whose latent attention is to positions that an indexer chooses",
		gguf: "deepseek32", hub: "DeepseekV32ForCausalLM", kind: "deepseek_v32", adapt: deepseekV32, block: prenorm,
		hubNames: with(latentNames, indexerNames), defaults: with(latentDefaults, map[string]int{
			"first_k_dense_replace": 3, "n_group": 8, "topk_group": 4, "n_shared_experts": 1, "index_n_heads": 64,
		}),
	})
	register(architecture{
		title: "GLM-5", about: "DeepSeek-V3.2's layers, some of which share the choice of an earlier one",
		gguf: "glm-dsa", hub: "GlmMoeDsaForCausalLM", kind: "glm_moe_dsa", adapt: glmMoeDSA, block: prenorm,
		hubNames: with(latentNames, indexerNames), defaults: map[string]int{
			"kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
			"first_k_dense_replace": 3, "n_shared_experts": 1, "index_n_heads": 32,
		},
	})
}

// indexerNames are the names of indexers in checkpoints.
var indexerNames = names{
	"indexer.attn_q_b": "*layers.#.self_attn.indexer.wq_b",
	"indexer.attn_k":   "*layers.#.self_attn.indexer.wk",
	"indexer.k_norm":   "*layers.#.self_attn.indexer.k_norm",
	"indexer.proj":     "*layers.#.self_attn.indexer.weights_proj",
}

func deepseekV32(c *config, s *Spec) {
	deepseekV3(c, s)
	s.indexer(c, false)
}

func glmMoeDSA(c *config, s *Spec) {
	s.epsilon(c, 1e-5)
	s.latent(c, 2048)
	s.yarnScores(c)
	s.Rope.Interleaved = true
	m := Mixture{
		Experts: 256, ExpertFFN: 2048,
		Route: plan.RouteAttr{Used: 8, Score: plan.SigmoidEach, Normalize: true, Scale: 2.5, GroupTop: 2},
	}
	if c.gguf {
		m.Route.Normalize, m.Route.Scale = false, 1
	} else {
		m.ChoiceBias = required
	}
	s.predicting(c)
	s.mixture(c, m)
	s.everyLayerSparse(c)
	s.indexer(c, true)
	s.Latent.Index.Shared = sharedChoices(c, s)
}

// An Indexer holds the numbers of the indexer of sparse attention. It has the rows that queries are
// computed from, and the layer's input, of which it makes queries, one key for all heads and a
// weight for each head. The beginning of each head is rotated with the frequencies of attention.
type Indexer struct {
	Heads, HeadDim int
	Top            int    // positions that a token attends to
	Interleaved    bool   // neighbours are rotated, not halves
	Shared         []bool // by layer: it has no indexer, and attends to the choice of the layer before it; nil: those without tensors
}

// indexer reads the numbers of the indexer. interleaved says which elements it rotates.
func (s *Spec) indexer(c *config, interleaved bool) {
	x := &Indexer{Interleaved: interleaved}
	s.Latent.Index = x
	if c.gguf {
		x.Heads = c.integer("attention.indexer.head_count", -1)
		x.HeadDim = c.integer("attention.indexer.key_length", -1)
		x.Top = c.chosen("attention.indexer.top_k", -1)
	} else {
		x.Heads = c.integer("index_n_heads", -1)
		x.HeadDim = c.integer("index_head_dim", 128)
		x.Top = c.chosen("index_topk", 2048)
		c.kinds("layer_types", s, "deepseek_sparse_attention", "deepseek_sparse_attention")
		c.only("indexer_rope_interleave", interleaved)
		c.only("rope_interleave", true)
	}
	switch {
	case s.Latent.QueryRank == 0:
		c.failf("there is no q_lora_rank; supported are queries computed from rows of their own")
	case x.HeadDim < s.Latent.Turned:
		c.failf("heads of the indexer have %d elements, of which %d are rotated", x.HeadDim, s.Latent.Turned)
	}
}

// chosen returns the number of rows to choose under key, as integer does.
func (c *config) chosen(key string, def int) int {
	n := c.integer(key, def)
	if n > plan.MostSelected {
		c.failf("%s is %d, want at most %d", c.key(key), n, plan.MostSelected)
	}
	return n
}

// sharedChoices reads which layers have no indexer: from a list, a pattern of letters, or a period.
// It returns nil if a GGUF file does not say.
func sharedChoices(c *config, s *Spec) []bool {
	shared := make([]bool, min(s.Layers, maxLayers))
	if c.gguf {
		full, ok := c.m.Bools(c.key("attention.indexer.types"))
		if list, ints := c.m.Ints(c.key("attention.indexer.types")); ints {
			ok = true
			for _, n := range list {
				full = append(full, n != 0)
			}
		}
		if !ok {
			return nil
		}
		if len(full) < len(shared) { // layers that predict further tokens may follow
			c.failf("%s names %d layers of %d", c.key("attention.indexer.types"), len(full), len(shared))
			return nil
		}
		for i := range shared {
			shared[i] = !full[i]
		}
		return shared
	}
	const pattern = "index_topk_pattern"
	kinds := c.kinds("indexer_types", s, "full", "shared")
	letters, listed := c.m.String(pattern)
	switch {
	case kinds != nil:
	case listed && len(letters) == s.Layers:
		for _, l := range letters {
			kinds = append(kinds, map[rune]string{'F': "full", 'S': "shared"}[l])
		}
		if i := slices.Index(kinds, ""); i >= 0 {
			c.failf("%s[%d] is %q, want %q or %q", pattern, i, letters[i], 'F', 'S')
		}
	case listed:
		c.failf("%s names %d layers of %d", pattern, len(letters), s.Layers)
	case c.has(pattern):
		kinds = c.kinds(pattern, s, "full", "shared")
	default:
		every, offset := max(1, c.first("index_topk_freq", 1)), c.first("index_skip_topk_offset", 2)
		for i := range shared {
			shared[i] = max(i-offset+1, 0)%every != 0
		}
		return shared
	}
	for i, k := range kinds {
		shared[i] = k == "shared"
	}
	return shared
}

// choice returns the positions that a layer attends to. from are the rows that queries are computed
// from.
func choice(b *plan.Builder, s *Spec, w layer, x, from plan.Value, name string) plan.Value {
	l := s.Latent.Index
	if l.Shared != nil && l.Shared[w.index] || l.Shared == nil && !w.has("indexer.attn_k") {
		if w.chosen == nil {
			b.Fail(fmt.Errorf("%w: layer %d has no indexer, and there is none before it", ErrTensor, w.index))
		}
		return *w.chosen
	}
	inner := *s
	inner.Norm, inner.NormBias, inner.NormPlus, inner.Eps = plan.LayerNorm, required, 0, 1e-6
	q := linear(b, w, from, "indexer.attn_q_b", l.Heads*l.HeadDim, without)
	k := norm(b, &inner, w, linear(b, w, x, "indexer.attn_k", l.HeadDim, without), "indexer.k_norm", l.HeadDim)
	if rope := s.ropeOf(w.index); rope != nil {
		turn := *rope
		turn.HeadDim, turn.First, turn.Interleaved = l.HeadDim, 0, l.Interleaved
		q, k = b.Rope(q, turn), b.Rope(k, turn)
	}
	// The papers multiply scores by 1/sqrt(HeadDim) and weights by 1/sqrt(Heads), which does not
	// change the choice.
	state := b.State(plan.State{Name: name, Kind: plan.PerToken, KVHeads: 1, HeadDim: l.HeadDim})
	chosen := b.Select(q, k, linear(b, w, x, "indexer.proj", l.Heads, without), state, plan.SelectAttr{Heads: l.Heads, HeadDim: l.HeadDim, Top: l.Top})
	w.chosen = &chosen
	return chosen
}
