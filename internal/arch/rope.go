package arch

import (
	"cmp"
	"math"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// ropeScaling holds a file's parameters for scaling rotary frequencies to longer contexts.
type ropeScaling struct {
	kind     string
	base     float64
	factor   float64 // extension of the context; 0 if the file does not say
	alpha    float64 // dynamic: fixed factor of the base; 0: by length
	original int     // context of the first training, in tokens

	attention        float64 // magnitude; 0: by the kind's own formula
	betaFast         float64 // yarn: rotations over the original context above which a frequency is not scaled
	betaSlow         float64 // yarn: rotations below which it is fully scaled
	truncate         bool    // yarn: bounds of the ramp are whole dimensions
	mscale, mscaleAD float64 // yarn: parameters of DeepSeek's magnitudes; 0: none
	low, high        float64 // llama3: divisors of the original context that bound the wavelengths
	short, long      []float64
	turned           int       // proportional: pairs that are rotated, of all pairs of a head
	divisors         []float64 // divisors of the frequencies, from a tensor; nil: none
}

// rope reads the parameters of rotary positions and computes their frequencies.
func (s *Spec) rope(c *config, w *weights) {
	const global, local = "rope_parameters.full_attention.", "rope_parameters.sliding_attention."
	switch {
	case s.Learned, s.Unturned != nil && !slices.Contains(s.Unturned, false):
		return
	case c.gguf:
		s.Rope.Dims = c.integer("rope.dimension_count", int(float64(s.HeadDim)*s.Partial))
		if s.LocalPart > 0 { // the key is of layers with a window
			s.Rope.Dims = int(float64(c.integer("rope.dimension_count", s.HeadDim)) * s.Partial / s.LocalPart)
		}
		sc := ggufScaling(c, s, w)
		s.turn(c, &s.Rope, &sc)
	case c.hasAny(global) || c.hasAny(local):
		sc := hubScaling(c, s, &s.Rope, global, s.RopeBase)
		s.turn(c, &s.Rope, &sc)
		s.Local = &plan.RopeAttr{Interleaved: s.Rope.Interleaved}
		sc = hubScaling(c, s, s.Local, local, cmp.Or(s.LocalBase, s.RopeBase))
		s.turn(c, s.Local, &sc)
	default:
		sc := hubScaling(c, s, &s.Rope, c.ropeKeys(), s.RopeBase)
		s.turn(c, &s.Rope, &sc)
	}
	if s.LocalBase > 0 && s.Local == nil && c.err == nil {
		s.Local = &plan.RopeAttr{Interleaved: s.Rope.Interleaved, Dims: c.integer("rope.dimension_count_swa", s.Rope.Dims)}
		if s.LocalPart > 0 {
			s.Local.Dims = int(float64(s.HeadDim) * s.LocalPart)
		}
		s.turn(c, s.Local, &ropeScaling{kind: "default", base: s.LocalBase, original: s.Context})
	}
}

// ropeKeys returns the prefix of config.json's keys of rotary positions.
func (c *config) ropeKeys() string {
	if c.hasAny("rope_scaling.") {
		return "rope_scaling."
	}
	return "rope_parameters."
}

// turn computes the frequencies of r.
func (s *Spec) turn(c *config, r *plan.RopeAttr, sc *ropeScaling) {
	if r.HeadDim = cmp.Or(r.HeadDim, s.HeadDim); c.err != nil {
		return
	}
	if r.Dims < 2 || r.Dims%2 != 0 || r.Dims > r.HeadDim {
		c.failf("rotary positions over %d of the %d elements of a head", r.Dims, r.HeadDim)
		return
	}
	sc.apply(c, s, r)
	sc.check(c, r)
}

// hubScaling reads rope_parameters (transformers 5), or rope_theta and rope_scaling (before), whose
// keys have the prefix at. base is for files that do not say. If a file has both, transformers uses
// rope_scaling.
func hubScaling(c *config, s *Spec, to *plan.RopeAttr, at string, base float64) ropeScaling {
	dim, partial := cmp.Or(to.HeadDim, s.HeadDim), c.number(at+"partial_rotary_factor", c.number("partial_rotary_factor", s.Partial))
	to.Dims = int(float64(dim) * partial)
	if _, listed := c.m.Floats("rope_theta"); !listed || s.LocalBase == 0 { // bases by layer are in s
		base = c.number("rope_theta", base)
	}
	r := ropeScaling{
		kind:     c.text(at+"rope_type", c.text(at+"type", "default")),
		base:     c.number(at+"rope_theta", base),
		original: s.Context,
	}
	if r.kind == "su" || r.kind == "yarn" && c.has(at+"short_factor") { // the first name of longrope
		r.kind = "longrope"
	}
	if r.kind != "default" {
		r.factor = c.optional(at + "factor")
	}
	if r.kind == "proportional" {
		r.turned, to.Dims = int(float64(dim)*partial/2), dim
	}
	if r.kind == "llama3" || r.kind == "yarn" || r.kind == "longrope" {
		r.original = c.integer("original_max_position_embeddings", c.integer(at+"original_max_position_embeddings", s.Context))
	}
	switch r.kind {
	case "dynamic":
		r.alpha = c.optional(at + "alpha")
	case "llama3":
		r.low, r.high = c.number(at+"low_freq_factor", -1), c.number(at+"high_freq_factor", -1)
		if !(r.low <= r.high) {
			c.failf("%slow_freq_factor is %v, want at most the %v of %shigh_freq_factor", at, r.low, r.high, at)
		}
	case "yarn":
		r.attention, r.mscale, r.mscaleAD = c.optional(at+"attention_factor"), c.optional(at+"mscale"), c.optional(at+"mscale_all_dim")
		r.yarnBounds(c.optional(at+"beta_fast"), c.optional(at+"beta_slow"), c.flag(at+"truncate", true))
	case "longrope":
		r.attention = c.optional(at + "attention_factor")
		if short := c.optional(at + "short_mscale"); short > 0 {
			if long := c.optional(at + "long_mscale"); long != short {
				c.failf("%slong_mscale is %v beside a short_mscale of %v; they must be equal", at, long, short)
			}
			r.attention = short
		}
		r.short, r.long = c.numbers(at+"short_factor", to.Dims/2), c.numbers(at+"long_factor", to.Dims/2)
	}
	return r
}

// yarnBounds sets the rotations between which frequencies blend; 0 stands for the paper's value.
func (sc *ropeScaling) yarnBounds(fast, slow float64, truncate bool) {
	sc.betaFast, sc.betaSlow, sc.truncate = 32, 1, truncate
	if fast > 0 {
		sc.betaFast = fast
	}
	if slow > 0 {
		sc.betaSlow = slow
	}
}

// ggufScaling reads the rope keys of GGUF. Factors by frequency are tensors.
func ggufScaling(c *config, s *Spec, w *weights) ropeScaling {
	r := ropeScaling{
		kind:      c.text("rope.scaling.type", "default"),
		base:      c.number("rope.freq_base", s.RopeBase),
		factor:    c.optional("rope.scaling.factor"),
		attention: c.optional("rope.scaling.attn_factor"),
		original:  c.integer("rope.scaling.original_context_length", s.Context),
	}
	if r.factor == 0 {
		r.factor = c.optional("rope.scale_linear")
	}
	r.yarnBounds(c.optional("rope.scaling.yarn_beta_fast"), c.optional("rope.scaling.yarn_beta_slow"), !s.Unrounded)
	if c.optional("rope.scaling.yarn_log_multiplier") > 0 {
		r.mscale, r.mscaleAD = 1, 1 // of models whose two parameters are equal
	}
	if r.kind == "none" {
		r.kind, r.factor = "default", 0
	}
	if r.kind == "default" && r.factor > 0 {
		r.kind = "linear"
	}
	half := s.Rope.Dims / 2
	r.short, r.long = w.factors("rope_factors_short", half), w.factors("rope_factors_long", half)
	if r.divisors = w.factors("rope_freqs", max(half, int(float64(s.HeadDim)*s.LocalPart)/2)); r.divisors != nil {
		r.divisors = r.divisors[:half] // layers with a window do not use them
	}
	if r.kind == "default" && r.long != nil {
		r.kind = "longrope"
	}
	if r.kind == "longrope" && (r.short == nil || r.long == nil) {
		c.failf("rope.scaling.type is longrope, but the file lacks rope_factors_short.weight or rope_factors_long.weight")
	}
	if r.kind == "yarn" && r.attention > 0 {
		// The key's value multiplies the magnitude of the paper's formula.
		r.attention *= yarnMagnitude(r.factor, 1)
	}
	if r.kind == "yarn" && s.Latent != nil && c.optional("rope.scaling.yarn_log_multiplier") > 0 {
		r.attention = 1 // the magnitude is in the scale of scores, see Spec.yarnScores
	}
	return r
}

// apply computes the frequencies by the kinds and formulas of transformers' modeling_rope_utils.
func (sc *ropeScaling) apply(c *config, s *Spec, r *plan.RopeAttr) {
	half := r.Dims / 2
	r.Scale = 1
	if sc.alpha > 0 && r.Dims > 2 { // NTK-aware, as used by Hunyuan's models
		sc.kind, sc.base = "default", sc.base*math.Pow(sc.alpha, float64(r.Dims)/float64(r.Dims-2))
	}
	r.Freqs = make([]float64, half)
	for i := range r.Freqs {
		r.Freqs[i] = math.Pow(sc.base, -2*float64(i)/float64(r.Dims))
	}
	if sc.divisors != nil {
		divide(r.Freqs, sc.divisors)
	}
	if (sc.kind == "linear" || sc.kind == "dynamic" || sc.kind == "llama3") && sc.factor == 0 {
		c.failf("rotary positions of kind %q need a factor", sc.kind)
		return
	}
	switch sc.kind {
	case "default":
	case "linear":
		for i := range r.Freqs {
			r.Freqs[i] /= sc.factor
		}
	case "proportional": // frequencies as over whole heads, most of which are then 0
		for i := range r.Freqs {
			if r.Freqs[i] /= cmp.Or(sc.factor, 1); i >= sc.turned {
				r.Freqs[i] = 0
			}
		}
	case "dynamic":
		if r.Dims <= 2 {
			c.failf("rotary positions of kind %q need more than %d rotated elements", sc.kind, r.Dims)
			return
		}
		// Scaling begins at the configuration's context.
		r.Dynamic, r.LongFrom = &plan.DynamicNTK{Base: sc.base, Factor: sc.factor}, sc.original
		s.Context = sc.stretched()
	case "llama3":
		sc.llama3(r.Freqs)
	case "yarn":
		sc.yarn(c, s, r)
	case "longrope":
		sc.longrope(c, s, r)
	default:
		c.failf("rotary positions of kind %q; the nearest known are %s", sc.kind, nearestOf(sc.kind, []string{"default", "linear", "dynamic", "llama3", "yarn", "longrope", "proportional"}))
	}
}

func divide(freqs, by []float64) {
	for i, d := range by {
		freqs[i] /= d
	}
}

// check refuses frequencies that are out of range: numbers that are valid alone may be too large
// together.
func (sc *ropeScaling) check(c *config, r *plan.RopeAttr) {
	usable := func(v float64) bool { return v >= 0 && v < 1e30 }
	for _, freqs := range [][]float64{r.Freqs, r.LongFreqs} {
		for i, f := range freqs {
			if !usable(f) {
				c.failf("rotary positions of kind %q with a base of %v and a factor of %v rotate pair %d by %v, want a number from 0 to 1e30",
					sc.kind, sc.base, sc.factor, i, f)
			}
		}
	}
	if !usable(r.Scale) {
		c.failf("rotary positions of kind %q with a factor of %v over a context of %d have a magnitude of %v, want a number from 0 to 1e30",
			sc.kind, sc.factor, sc.original, r.Scale)
	}
}

// llama3 scales frequencies whose wavelength exceeds the original context, keeps those well below
// it, and blends between.
func (sc *ropeScaling) llama3(freqs []float64) {
	original := float64(sc.original)
	for i, f := range freqs {
		wavelength := 2 * math.Pi / f
		blend := 0.0
		if sc.low < sc.high {
			blend = (original/wavelength - sc.low) / (sc.high - sc.low)
		}
		switch {
		case wavelength < original/sc.high:
		case wavelength > original/sc.low:
			freqs[i] = f / sc.factor
		default:
			freqs[i] = (1-blend)*f/sc.factor + blend*f
		}
	}
}

// stretched returns the extended context in tokens.
func (sc *ropeScaling) stretched() int {
	return int(min(float64(sc.original)*sc.factor, largest))
}

// yarnMagnitude returns 0.1 m ln(s) + 1 (Peng et al., "YaRN", 2023, section 3.4).
func yarnMagnitude(scale, m float64) float64 {
	if scale <= 1 {
		return 1
	}
	return 0.1*m*math.Log(scale) + 1
}

// yarn blends frequencies by their number of rotations over the original context (Peng et al.,
// 2023, section 3.2).
func (sc *ropeScaling) yarn(c *config, s *Spec, r *plan.RopeAttr) {
	if sc.factor == 0 {
		sc.factor = float64(s.Context) / float64(sc.original)
	}
	s.Context = max(s.Context, sc.stretched()) // some files give the original context, others the extended one
	dims := float64(r.Dims)
	bound := func(rotations float64) float64 {
		return dims * math.Log(float64(sc.original)/(rotations*2*math.Pi)) / (2 * math.Log(sc.base))
	}
	low, high := bound(sc.betaFast), bound(sc.betaSlow)
	if sc.truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, dims-1)
	if low == high {
		high += 0.001
	}
	for i, f := range r.Freqs {
		stretch := min(max((float64(i)-low)/(high-low), 0), 1)
		r.Freqs[i] = f/sc.factor*stretch + f*(1-stretch)
	}
	switch {
	case sc.attention > 0:
		r.Scale = sc.attention
	case sc.mscale > 0 && sc.mscaleAD > 0:
		r.Scale = yarnMagnitude(sc.factor, sc.mscale) / yarnMagnitude(sc.factor, sc.mscaleAD)
	default:
		r.Scale = yarnMagnitude(sc.factor, 1)
	}
	if !(sc.base > 1) {
		c.failf("rotary positions of kind yarn need a base above 1, have %v", sc.base)
	}
}

// longrope divides each frequency by its own factor, and by another one for sequences beyond the
// original context (Ding et al., "LongRoPE", 2024).
func (sc *ropeScaling) longrope(c *config, s *Spec, r *plan.RopeAttr) {
	if sc.factor == 0 {
		sc.factor = float64(s.Context) / float64(sc.original)
	}
	switch {
	case sc.attention > 0:
		r.Scale = sc.attention
	case sc.factor > 1:
		r.Scale = math.Sqrt(1 + math.Log(sc.factor)/math.Log(float64(sc.original)))
	}
	r.LongFrom = sc.original
	r.LongFreqs = append([]float64(nil), r.Freqs...)
	divide(r.Freqs, sc.short)
	divide(r.LongFreqs, sc.long)
}
