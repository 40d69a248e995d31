package synth

import "strings"

// A Shape has the dimensions of a model, as in its publisher's config.json.
type Shape struct {
	Name         string // common name
	Architecture string // general.architecture of GGUF; see families

	Layers  int
	Hidden  int // width of the residual stream
	FFN     int // width of the feed-forward layer
	Heads   int // of queries
	KVHeads int
	HeadDim int
	Vocab   int // rows of the embedding table
	Context int // tokens that the model was trained for

	Experts   int // experts of each feed-forward layer; 0: none
	Used      int // experts that compute a token
	ExpertFFN int // width of an expert
	SharedFFN int // width of the shared expert; 0: none
	Dense     int // first layers, which have no experts

	Attending []int      // layers with attention, where others have what the architecture has beside it; nil: all
	Taps      int        // tokens that a short convolution reads
	Delta     DeltaShape // of delta nets
	Latent    LatentShape
	OutGate   bool // queries have a gate of the result beside them

	RopeBase float64
	RopeDims int      // elements of a head that are rotated; 0: all
	RopeLong RopeLong // zero: none
	Eps      float64  // epsilon of the norms
	Tied     bool     // the embedding table is also the head
	QKVBias  bool     // queries, keys and values have biases
	QKNorm   bool     // queries and keys are normalized per head
}

// A DeltaShape has the dimensions of gated delta nets.
type DeltaShape struct {
	Keys, Values     int // heads
	KeyDim, ValueDim int // of a head
}

// A LatentShape has the dimensions of latent attention.
type LatentShape struct {
	Rank          int // width of the row that is kept for each token
	Plain, Turned int // elements of a key that are not rotated, and that are
	Value         int // width of a head's value
}

// RopeLong has the parameters of Llama 3's scaling of rotary positions: wavelengths beyond
// Original/Low positions are scaled by Factor, those below Original/High are not scaled.
type RopeLong struct {
	Factor, Low, High float64
	Original          int // context of the original training
}

// every returns the layers of n whose number, counted from 1, is a multiple of nth.
func every(nth, n int) (layers []int) {
	for i := nth - 1; i < n; i += nth {
		layers = append(layers, i)
	}
	return layers
}

// Shapes are the known shapes of published models, small ones first. Pairs for comparison follow: a
// mixture of experts, and a model that computes with as many weights without a router; then models
// with other layers than LLaMA's. Only the model of text is here of those that read images too.
var Shapes = []Shape{
	{
		Name: "qwen2.5-0.5b", Architecture: "qwen2",
		Layers: 24, Hidden: 896, FFN: 4864, Heads: 14, KVHeads: 2, HeadDim: 64, Vocab: 151936, Context: 32768,
		RopeBase: 1e6, Eps: 1e-6, Tied: true, QKVBias: true,
	},
	{
		Name: "qwen3-0.6b", Architecture: "qwen3",
		Layers: 28, Hidden: 1024, FFN: 3072, Heads: 16, KVHeads: 8, HeadDim: 128, Vocab: 151936, Context: 40960,
		RopeBase: 1e6, Eps: 1e-6, Tied: true, QKNorm: true,
	},
	{
		Name: "llama-3.2-1b", Architecture: "llama",
		Layers: 16, Hidden: 2048, FFN: 8192, Heads: 32, KVHeads: 8, HeadDim: 64, Vocab: 128256, Context: 131072,
		RopeBase: 5e5, RopeLong: RopeLong{Factor: 32, Low: 1, High: 4, Original: 8192}, Eps: 1e-5, Tied: true,
	},
	{
		Name: "qwen2.5-1.5b", Architecture: "qwen2",
		Layers: 28, Hidden: 1536, FFN: 8960, Heads: 12, KVHeads: 2, HeadDim: 128, Vocab: 151936, Context: 32768,
		RopeBase: 1e6, Eps: 1e-6, Tied: true, QKVBias: true,
	},
	{
		Name: "llama-3.1-8b", Architecture: "llama",
		Layers: 32, Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 128256, Context: 131072,
		RopeBase: 5e5, RopeLong: RopeLong{Factor: 8, Low: 1, High: 4, Original: 8192}, Eps: 1e-5,
	},
	{
		Name: "qwen3-8b", Architecture: "qwen3",
		Layers: 36, Hidden: 4096, FFN: 12288, Heads: 32, KVHeads: 8, HeadDim: 128, Vocab: 151936, Context: 40960,
		RopeBase: 1e6, Eps: 1e-6, QKNorm: true,
	},
	{
		Name: "llama-3.1-70b", Architecture: "llama",
		Layers: 80, Hidden: 8192, FFN: 28672, Heads: 64, KVHeads: 8, HeadDim: 128, Vocab: 128256, Context: 131072,
		RopeBase: 5e5, RopeLong: RopeLong{Factor: 8, Low: 1, High: 4, Original: 8192}, Eps: 1e-5,
	},
	{
		Name: "moe-8of64", Architecture: "qwen3moe",
		Layers: 12, Hidden: 2048, FFN: 4096, Heads: 16, KVHeads: 4, HeadDim: 64, Vocab: 32768, Context: 40960,
		Experts: 64, Used: 8, ExpertFFN: 512,
		RopeBase: 1e6, Eps: 1e-6, Tied: true, QKNorm: true,
	},
	{
		Name: "dense-2.5b", Architecture: "qwen3",
		Layers: 12, Hidden: 2048, FFN: 64 * 512, Heads: 16, KVHeads: 4, HeadDim: 64, Vocab: 32768, Context: 40960,
		RopeBase: 1e6, Eps: 1e-6, Tied: true, QKNorm: true,
	},
	{
		Name: "moe-20b", Architecture: "qwen3moe",
		Layers: 6, Hidden: 8192, FFN: 16384, Heads: 64, KVHeads: 8, HeadDim: 128, Vocab: 32768, Context: 40960,
		Experts: 64, Used: 8, ExpertFFN: 2048,
		RopeBase: 1e6, Eps: 1e-6, Tied: true, QKNorm: true,
	},
	{
		Name: "dense-20b", Architecture: "qwen3",
		Layers: 6, Hidden: 8192, FFN: 64 * 2048, Heads: 64, KVHeads: 8, HeadDim: 128, Vocab: 32768, Context: 40960,
		RopeBase: 1e6, Eps: 1e-6, Tied: true, QKNorm: true,
	},
	{
		Name: "qwen3-30b-a3b", Architecture: "qwen3moe",
		Layers: 48, Hidden: 2048, FFN: 6144, Heads: 32, KVHeads: 4, HeadDim: 128, Vocab: 151936, Context: 40960,
		Experts: 128, Used: 8, ExpertFFN: 768,
		RopeBase: 1e6, Eps: 1e-6, QKNorm: true,
	},
	{
		Name: "lfm2-1.2b", Architecture: "lfm2",
		Layers: 16, Hidden: 2048, FFN: 8192, Heads: 32, KVHeads: 8, HeadDim: 64, Vocab: 65536, Context: 128000,
		Attending: []int{2, 5, 8, 10, 12, 14}, Taps: 3,
		RopeBase: 1e6, Eps: 1e-5, Tied: true, QKNorm: true,
	},
	{
		Name: "qwen3.5-4b", Architecture: "qwen35",
		Layers: 32, Hidden: 2560, FFN: 9216, Heads: 16, KVHeads: 4, HeadDim: 256, Vocab: 248320, Context: 262144,
		Attending: every(4, 32), Taps: 4, Delta: DeltaShape{Keys: 16, Values: 32, KeyDim: 128, ValueDim: 128}, OutGate: true,
		RopeBase: 1e7, RopeDims: 64, Eps: 1e-6, Tied: true, QKNorm: true,
	},
	{
		Name: "qwen3.5-35b-a3b", Architecture: "qwen35moe",
		Layers: 40, Hidden: 2048, FFN: 512, Heads: 16, KVHeads: 2, HeadDim: 256, Vocab: 248320, Context: 262144,
		Experts: 256, Used: 8, ExpertFFN: 512, SharedFFN: 512,
		Attending: every(4, 40), Taps: 4, Delta: DeltaShape{Keys: 16, Values: 32, KeyDim: 128, ValueDim: 128}, OutGate: true,
		RopeBase: 1e7, RopeDims: 64, Eps: 1e-6, QKNorm: true,
	},
	{
		Name: "deepseek-v2-lite", Architecture: "deepseek2",
		Layers: 27, Hidden: 2048, FFN: 10944, Heads: 16, KVHeads: 1, HeadDim: 576, Vocab: 102400, Context: 163840,
		Experts: 64, Used: 6, ExpertFFN: 1408, SharedFFN: 2 * 1408, Dense: 1,
		Latent:   LatentShape{Rank: 512, Plain: 128, Turned: 64, Value: 128},
		RopeBase: 1e4, RopeDims: 64, Eps: 1e-6,
	},
}

// FindShape returns the shape with the given name, ignoring case, and reports whether there is one.
func FindShape(name string) (*Shape, bool) {
	for i := range Shapes {
		if strings.EqualFold(Shapes[i].Name, name) {
			return &Shapes[i], true
		}
	}
	return nil, false
}
