package arch

import (
	"maps"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// BERT (Devlin et al., 2018) and models that compute in the same way: RoBERTa (Liu et al., 2019)
// and XLM-RoBERTa (Conneau et al., 2019), whose positions begin after the padding token's id. GGUF
// has one architecture for all, with position tables that lack the unused first rows. A head reads
// the first token's state through a product and a tanh, which BERT calls its pooler.
func init() {
	norms := map[string]string{"rms_norm_eps": "layer_norm_eps"}
	add := func(a architecture) {
		a.keys, a.norm, a.encode = norms, plan.LayerNorm, encodeBERT
		register(a)
	}
	bertNames := maps.Clone(bertNames)
	maps.Copy(bertNames, names{"cls": "*pooler.dense", "cls.output": "classifier"})
	const about, head = "an encoder: bidirectional attention, learned positions and token types, norms after each addition", "ranks or classifies"
	add(architecture{title: "BERT", about: about, gguf: "bert", hub: "BertModel", kind: "bert", base: "bert.", hubNames: bertNames, adapt: bert})
	add(architecture{title: "BERT with a head", about: head, hub: "BertForSequenceClassification", base: "bert.", hubNames: bertNames, adapt: classifying(bert)})

	robertaNames := maps.Clone(bertNames)
	maps.Copy(robertaNames, names{"cls": "classifier.dense", "cls.output": "classifier.out_proj"})
	const later = "BERT whose positions begin after the padding token's id; its files in GGUF are BERT's"
	for _, m := range []struct{ title, class, kind string }{{"RoBERTa", "Roberta", "roberta"}, {"XLM-RoBERTa", "XLMRoberta", "xlm-roberta"}, {"CamemBERT", "Camembert", "camembert"}} {
		add(architecture{title: m.title, about: later, hub: m.class + "Model", kind: m.kind, base: "roberta.", hubNames: robertaNames, adapt: roberta})
		add(architecture{title: m.title + " with a head", about: head, hub: m.class + "ForSequenceClassification", base: "roberta.", hubNames: robertaNames, adapt: classifying(roberta)})
	}
}

var bertNames = names{
	"token_embd":      "*embeddings.word_embeddings",
	"token_types":     "*embeddings.token_type_embeddings",
	"position_embd":   "*embeddings.position_embeddings",
	"token_embd_norm": "*embeddings.LayerNorm",
	"pooler":          "*pooler.dense",

	"attn_q":            "*encoder.layer.#.attention.self.query",
	"attn_k":            "*encoder.layer.#.attention.self.key",
	"attn_v":            "*encoder.layer.#.attention.self.value",
	"attn_output":       "*encoder.layer.#.attention.output.dense",
	"attn_output_norm":  "*encoder.layer.#.attention.output.LayerNorm",
	"ffn_up":            "*encoder.layer.#.intermediate.dense",
	"ffn_down":          "*encoder.layer.#.output.dense",
	"layer_output_norm": "*encoder.layer.#.output.LayerNorm",
}

func bert(c *config, s *Spec) {
	s.Unturned = slices.Repeat([]bool{true}, len(s.Windows))
	s.Encoder.act = plan.Tanh
	if c.gguf {
		s.Act = plan.GELU
		if c.flag("attention.causal", false) {
			c.failf("%s is true, want false: tokens also attend to later ones", c.key("attention.causal"))
		}
		return
	}
	s.Act = c.activation("hidden_act", "gelu")
	s.QKVBias, s.OutBias, s.MLPBias, s.Encoder.bias = required, required, required, required
	if !c.has("rms_norm_eps") {
		s.Eps = 1e-12 // transformers' default
	}
	if kind := c.text("position_embedding_type", "absolute"); kind != "absolute" {
		c.failf("position_embedding_type is %q, want %q", kind, "absolute")
	}
	if c.flag("is_decoder", false) {
		c.failf("is_decoder is true; only encoders of this architecture are supported")
	}
}

func roberta(c *config, s *Spec) {
	bert(c, s)
	if !c.gguf {
		s.Encoder.firstPosition = c.first("pad_token_id", 1) + 1
		s.Context -= s.Encoder.firstPosition
		if s.Context < 1 {
			c.failf("max_position_embeddings leaves no position after the %d unused ones", s.Encoder.firstPosition)
		}
	}
}

func encodeBERT(b *plan.Builder, s *Spec, w *weights) {
	top := layer{w, noLayer}
	x := embedded(b, s, top)
	if top.hub || top.has("token_types") {
		x = b.Add(x, b.Position(top.weight("token_types"), 1))
	}
	x = b.Add(x, b.Position(rowsFrom(b, top.weight("position_embd"), s.Encoder.firstPosition), 0))
	x = norm(b, s, top, x, "token_embd_norm", s.Hidden)
	encoded(b, s, top, encoderLayers(b, s, w, bertLayer, x))
	top.ignore("pooler")
}

// bertLayer normalizes the residual stream itself, after each addition.
func bertLayer(b *plan.Builder, s *Spec, w layer, x plan.Value) plan.Value {
	x = norm(b, s, w, b.Add(x, bidirectional(b, s, w, x)), "attn_output_norm", s.Hidden)
	return norm(b, s, w, b.Add(x, ungated(b, s, w, x)), "layer_output_norm", s.Hidden)
}
