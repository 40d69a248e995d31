package plantest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A mixture is a program of one mixture of experts. Its router's logits are rows of a table, which
// every backend reads exactly. They are far enough apart that all backends choose the same experts.
type mixture struct {
	name         string
	route        plan.RouteAttr
	glu          plan.GLUAttr
	experts      int // identities included
	identities   int
	d, ffn       int
	format, back tensor.DType // of gate and up; of down
	biases       bool         // products have biases
	choice       bool         // the router has biases
	derived      bool         // weights have a source of rows instead of bytes
	ungated      bool         // up is gate
	scaled       bool         // the experts have scales
	given        bool         // a table has the experts of each token

	attr          plan.ExpertsAttr
	table, router *tensor.Tensor
	bias          *tensor.Tensor
	listed        *tensor.Tensor // experts of each token
	program       *plan.Program
}

const mixtureVocab = 41

// make fills in the random parts. draw returns logits.
func (m *mixture) make(t *testing.T, rng *rand.Rand, draw func(token, expert int) float32) {
	t.Helper()
	if m.route.Scale == 0 {
		m.route.Scale = 1
	}
	m.table = Weight(rng, "table", tensor.F32, 1, mixtureVocab, m.d)
	var choice []float64
	if m.choice {
		values := make([]float32, m.experts)
		for i := range values {
			values[i] = float32(rng.IntN(5)) / 8
		}
		m.bias = floatTable("choice", values)
		m.bias.Shape = []int{m.experts}
		choice = matrix(m.bias)[0]
	}
	rows := make([][]float32, mixtureVocab)
	for i := range rows {
		for try := 0; ; try++ {
			if try == 10_000 {
				t.Fatalf("%s: found no logits that choose experts without ties", m.name)
			}
			rows[i] = make([]float32, m.experts)
			for e := range rows[i] {
				rows[i][e] = draw(i, e)
			}
			if _, _, clear := routed(rows[i], choice, m.route); clear {
				break
			}
		}
	}
	m.router = floatTable("router", rows...)
	list := func(name string, d tensor.DType, scale float64, shape ...int) (all []*tensor.Tensor) {
		for e := range m.experts - m.identities {
			w := Weight(rng, fmt.Sprintf("%s.%d", name, e), d, scale, shape...)
			if m.derived && len(shape) == 2 {
				w = Derive(w)
			}
			all = append(all, w)
		}
		return all
	}
	size := 1 / math.Sqrt(float64(m.d))
	m.attr = plan.ExpertsAttr{
		Route: m.route, GLU: m.glu, Identity: m.identities,
		Gate: list("gate", m.format, 2*size, m.ffn, m.d), Up: list("up", m.format, 2*size, m.ffn, m.d),
		Down: list("down", m.back, 1/math.Sqrt(float64(m.ffn)), m.d, m.ffn),
	}
	if m.biases {
		m.attr.GateBias, m.attr.UpBias = list("gate.bias", tensor.F32, 0.5, m.ffn), list("up.bias", tensor.F32, 0.5, m.ffn)
		m.attr.DownBias = list("down.bias", tensor.BF16, 0.5, m.d)
	}
	if m.ungated {
		m.attr.Up = m.attr.Gate
	}
	if m.scaled {
		m.attr.Scales = vector(rng, "scales", 1, 0.5, m.experts)
	}
	if m.given { // some twice
		rows := make([][]float32, mixtureVocab)
		for i := range rows {
			for range m.route.Used {
				rows[i] = append(rows[i], float32(rng.IntN(m.experts)))
			}
		}
		m.listed = floatTable("given", rows...)
	}
	m.program = single(t, m.table, func(b *plan.Builder, x plan.Value) plan.Value {
		if m.given {
			return b.GivenExperts(x, b.Embed(m.router), b.EmbedPart(m.listed, 0, m.route.Used), m.attr)
		}
		return b.Experts(x, b.Embed(m.router), m.bias, m.attr)
	})
}

// want computes the tokens' rows in float64, each by itself.
func (m *mixture) want(tokens []int32, activations tensor.DType) [][]float64 {
	bias := func(list []*tensor.Tensor, e int) []float64 {
		if list == nil {
			return nil
		}
		return matrix(list[e])[0]
	}
	var choice []float64
	if m.bias != nil {
		choice = matrix(m.bias)[0]
	}
	logits, err := m.router.Float32s()
	if err != nil {
		panic(err)
	}
	known := map[[2]int][]float64{} // results by token and expert
	var out [][]float64
	for _, id := range tokens {
		chosen, weights, _ := routed(logits[int(id)*m.experts:][:m.experts], choice, m.route)
		if m.given {
			chosen = nil
			for _, e := range matrix(m.listed)[id] {
				chosen = append(chosen, int(e))
			}
			weights = weighed(scored(logits[int(id)*m.experts:][:m.experts], m.route.Score), chosen, m.route)
		}
		for k, e := range chosen {
			if m.scaled {
				weights[k] *= matrix(m.attr.Scales)[0][e]
			}
		}
		sum := make([]float64, m.d)
		for k, e := range chosen {
			y := known[[2]int{int(id), e}]
			if e >= m.experts-m.identities {
				y = matrix(m.table)[id]
			}
			if y == nil {
				x := rounded(rowsOf(matrix(m.table), []int32{id}), activations, m.format)
				gate, up := product(x, matrix(m.attr.Gate[e]), bias(m.attr.GateBias, e)), product(x, matrix(m.attr.Up[e]), bias(m.attr.UpBias, e))
				if m.route.Before {
					for i := range gate[0] {
						gate[0][i], up[0][i] = weights[k]*gate[0][i], weights[k]*up[0][i]
					}
				}
				h := gated(gate, up, m.glu)
				y = product(rounded(h, activations, m.back), matrix(m.attr.Down[e]), bias(m.attr.DownBias, e))[0]
				known[[2]int{int(id), e}] = y
			}
			out := weights[k]
			if m.route.Before {
				out = 1
			}
			for i, v := range y {
				sum[i] += out * v
			}
		}
		out = append(out, sum)
	}
	return out
}

// routed returns the experts of a token, best first, and their weights. clear reports that any two
// candidates differ clearly, or have the same logits and biases.
func routed(logits []float32, bias []float64, a plan.RouteAttr) (experts []int, weights []float64, clear bool) {
	n := len(logits)
	scores := scored(logits, a.Score)
	choice := slices.Clone(scores)
	for i, v := range bias {
		choice[i] += v
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	candidates, clear := all, true
	if a.Groups > 1 {
		size := n / a.Groups
		value := make([]float64, a.Groups)
		for g := range value {
			best := slices.Clone(choice[g*size : (g+1)*size])
			sort.Sort(sort.Reverse(sort.Float64Slice(best)))
			for _, v := range best[:a.GroupTop] {
				value[g] += v
			}
		}
		groups, apart := ranked(value, all[:a.Groups], a.GroupsUsed)
		slices.Sort(groups)
		candidates, clear = nil, apart
		for _, g := range groups {
			candidates = append(candidates, all[g*size:(g+1)*size]...)
		}
	}
	experts, apart := ranked(choice, candidates, a.Used)
	if a.Score == plan.SparseMixer {
		weights, near := mixed(scores, experts, a)
		return experts, weights, clear && apart && !near
	}
	return experts, weighed(scores, experts, a), clear && apart
}

// scored returns the scores of experts.
func scored(logits []float32, s plan.Score) []float64 {
	scores := make([]float64, len(logits))
	for i, v := range logits {
		scores[i] = float64(v)
	}
	switch s {
	case plan.SoftmaxAll:
		return softmax(scores)
	case plan.SigmoidEach:
		for i, v := range scores {
			scores[i] = 1 / (1 + math.Exp(-v))
		}
	case plan.SqrtSoftplus:
		for i, v := range scores {
			scores[i] = math.Sqrt(math.Log(1 + math.Exp(v)))
		}
	}
	return scores
}

// weighed returns the weights of the chosen experts.
func weighed(scores []float64, experts []int, a plan.RouteAttr) []float64 {
	weights := make([]float64, len(experts))
	for k, e := range experts {
		weights[k] = scores[e]
	}
	if a.Score == plan.SoftmaxChosen {
		weights = softmax(weights)
	}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	for k := range weights {
		if a.Normalize {
			weights[k] /= total
		}
		weights[k] *= a.Scale
	}
	return weights
}

// mixed returns the weights of [plan.SparseMixer]. near reports that rounding may decide whether a
// logit counts.
func mixed(logits []float64, experts []int, a plan.RouteAttr) (weights []float64, near bool) {
	for k, e := range experts {
		sum, s := 0.0, logits[e]
		for i, t := range logits {
			if slices.Contains(experts[:k], i) {
				continue
			}
			far := s - t - 2*a.Jitter*max(math.Abs(t), s)
			if near = near || math.Abs(far) < 1e-3 && i != e; far <= 0 {
				sum += math.Exp(t - s)
			}
		}
		weights = append(weights, a.Scale/sum)
	}
	return weights, near
}

// ranked returns the n best of a list; of equals the earlier ones. apart reports that each is
// clearly better than the next, or equal to it.
func ranked(value []float64, list []int, n int) (best []int, apart bool) {
	best, apart = slices.Clone(list), true
	sort.SliceStable(best, func(i, j int) bool { return value[best[i]] > value[best[j]] })
	for i := range min(n, len(best)-1) {
		u, v := value[best[i]], value[best[i+1]]
		apart = apart && (u == v || u-v > 1e-3*max(math.Abs(u), math.Abs(v)))
	}
	return best[:n], apart
}

func softmax(x []float64) []float64 {
	y, sum, top := make([]float64, len(x)), 0.0, slices.Max(x)
	for i, v := range x {
		y[i] = math.Exp(v - top)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

func experts(t *testing.T, b plan.Backend) {
	t.Run("Formats", func(t *testing.T) { expertFormats(t, b) })
	t.Run("Routes", func(t *testing.T) { expertRoutes(t, b) })
	t.Run("Forms", func(t *testing.T) { expertForms(t, b) })
	t.Run("SameBits", func(t *testing.T) { expertBits(t, b) })
}

// normal returns a function that draws logits of standard deviation size.
func normal(rng *rand.Rand, size float64) func(int, int) float32 {
	return func(int, int) float32 { return float32(rng.NormFloat64() * size) }
}

// expertFormats runs experts with weights of every format.
func expertFormats(t *testing.T, b plan.Backend) {
	for i, m := range []mixture{
		{format: tensor.F32, back: tensor.F32, d: 37, ffn: 19},
		{format: tensor.F32, back: tensor.F32, d: 96, ffn: 48, glu: plan.GLUAttr{Act: plan.QuickGELU, Limit: 1.5, Shift: 1}, biases: true},
		{format: tensor.BF16, back: tensor.BF16, d: 64, ffn: 72},
		{format: tensor.BF16, back: tensor.BF16, d: 48, ffn: 33, derived: true},
		{format: tensor.F16, back: tensor.F16, d: 128, ffn: 40, biases: true},
		{format: tensor.Q8_0, back: tensor.Q8_0, d: 160, ffn: 96},
		{format: tensor.Q8_0, back: tensor.F16, d: 96, ffn: 40, glu: plan.GLUAttr{Act: plan.GELUTanh}},
		{format: tensor.Q4_0, back: tensor.Q4_0, d: 96, ffn: 160, biases: true},
		{format: tensor.Q4_0, back: tensor.Q8_0, d: 288, ffn: 32, derived: true},
		{format: tensor.Q4_K, back: tensor.Q6_K, d: 256, ffn: 256},
		{format: tensor.Q4_K, back: tensor.Q4_K, d: 512, ffn: 256, biases: true, derived: true},
		{format: tensor.Q6_K, back: tensor.Q4_0, d: 256, ffn: 64, glu: plan.GLUAttr{Act: plan.GELU}},
		{format: tensor.MXFP4, back: tensor.MXFP4, d: 160, ffn: 96, glu: plan.GLUAttr{Act: plan.QuickGELU, Limit: 7, Shift: 1}, biases: true},
		{format: tensor.IQ2_XS, back: tensor.IQ2_XS, d: 256, ffn: 256},
		{format: tensor.IQ2_XS, back: tensor.Q4_K, d: 256, ffn: 256, derived: true},
		{format: tensor.Q4_K, back: tensor.IQ3_S, d: 256, ffn: 256},
		{format: tensor.BF16, back: tensor.BF16, d: 64, ffn: 72, glu: plan.GLUAttr{Act: plan.ReLU}, ungated: true},
		{format: tensor.Q4_K, back: tensor.Q6_K, d: 256, ffn: 256, glu: plan.GLUAttr{Act: plan.ReLU}, ungated: true},
		{format: tensor.F8_E4M3_32, back: tensor.F8_E4M3_32, d: 160, ffn: 96},
		{format: tensor.F8_E4M3_32, back: tensor.Q8_0, d: 288, ffn: 32, biases: true, derived: true},
	} {
		rng := newRand(uint64(100 + i))
		m.experts, m.route = 4, plan.RouteAttr{Used: 2, Normalize: true}
		m.name = fmt.Sprintf("%v and %v, %d and %d, %v", m.format, m.back, m.d, m.ffn, m.glu)
		m.make(t, rng, normal(rng, 1))
		for _, tokens := range longtest.Cases([]int{1, 5, 20}, []int{5}) {
			list := ids(rng, tokens, mixtureVocab)
			got := outputsWith(t, b, m.program, list, plan.Limits{Cache: tensor.F32}, 16, 0)
			near(t, fmt.Sprintf("%s, %d tokens", m.name, tokens), got, m.want(list, tensor.F32), 2e-5, 0)

			got = outputsWith(t, b, m.program, list, plan.Limits{Cache: tensor.F32, Activations: b.Rounds()}, 16, 0)
			if e := distance(got, m.want(list, b.Rounds())); !(e <= chained(b.Rounds(), m.format, m.back)) {
				t.Errorf("%s, %d tokens, %v activations: %.2g from the result in float64", m.name, tokens, b.Rounds(), e)
			}
		}
	}
}

// expertRoutes chooses experts by every kind of score.
func expertRoutes(t *testing.T, b plan.Backend) {
	var all []mixture
	for _, score := range []plan.Score{plan.SoftmaxAll, plan.SoftmaxChosen, plan.SigmoidEach} {
		for _, c := range []struct{ used, experts int }{{1, 4}, {2, 4}, {2, 8}, {8, 8}, {1, 64}, {8, 64}} {
			all = append(all, mixture{experts: c.experts, route: plan.RouteAttr{Used: c.used, Score: score}})
			if score != plan.SoftmaxChosen {
				all = append(all, mixture{experts: c.experts, route: plan.RouteAttr{Used: c.used, Score: score, Normalize: true, Scale: 2.5}})
				all = append(all, mixture{experts: c.experts, route: plan.RouteAttr{Used: c.used, Score: score, Normalize: c.used > 2}, choice: true})
			}
		}
		for _, top := range []int{1, 2} {
			all = append(all, mixture{experts: 8, route: plan.RouteAttr{Used: 2, Score: score, Scale: 1.5, Groups: 4, GroupsUsed: 2, GroupTop: top}})
			all = append(all, mixture{experts: 64, route: plan.RouteAttr{Used: 8, Score: score, Groups: 8, GroupsUsed: 3, GroupTop: top, Normalize: score == plan.SigmoidEach, Scale: 2.5}, choice: score == plan.SigmoidEach})
			all = append(all, mixture{experts: 8, route: plan.RouteAttr{Used: 4, Score: score, Groups: 4, GroupsUsed: 2, GroupTop: top}})
		}
	}
	for i, m := range all {
		kinds := []string{"apart", "tied", "one for all"}
		for _, logits := range longtest.Cases(kinds, kinds[i%3:i%3+1]) {
			rng := newRand(uint64(200 + i))
			m.name = fmt.Sprintf("%d of %d, %v, biased %v, %s", m.route.Used, m.experts, m.route, m.choice, logits)
			m.d, m.ffn, m.format, m.back = 32, 8, tensor.F32, tensor.F32
			draw := normal(rng, 1.5)
			switch logits {
			case "tied":
				draw = func(int, int) float32 { return float32(rng.IntN(4)) - 1.5 }
			case "one for all": // every token chooses expert m.experts/2
				draw = func(_, e int) float32 {
					if e == m.experts/2 {
						return 6
					}
					return float32(rng.NormFloat64()) - 2*float32(e%2)
				}
			}
			m.make(t, rng, draw)
			list := ids(rng, 33, mixtureVocab)
			near(t, m.name, outputsWith(t, b, m.program, list, plan.Limits{Cache: tensor.F32}, 16, 0), m.want(list, tensor.F32), 2e-5, 0)
		}
	}
}

// expertForms runs experts whose weights multiply their inputs, experts with scales, identities, those
// that a table has, and those that the sparse mixer chooses.
func expertForms(t *testing.T, b plan.Backend) {
	for i, m := range []mixture{
		{format: tensor.F32, back: tensor.F32, d: 37, ffn: 19, experts: 4, route: plan.RouteAttr{Used: 1, Score: plan.SigmoidEach, Before: true}},
		{format: tensor.Q8_0, back: tensor.Q8_0, d: 64, ffn: 96, experts: 8, route: plan.RouteAttr{Used: 3, Score: plan.SigmoidEach, Before: true}},
		{format: tensor.BF16, back: tensor.BF16, d: 64, ffn: 40, experts: 8, route: plan.RouteAttr{Used: 2, Normalize: true}, scaled: true},
		{format: tensor.Q4_0, back: tensor.Q4_0, d: 64, ffn: 64, experts: 8, route: plan.RouteAttr{Used: 2, Before: true}, scaled: true},
		{format: tensor.F32, back: tensor.F32, d: 37, ffn: 19, experts: 5, identities: 4, route: plan.RouteAttr{Used: 2, Scale: 6}, choice: true},
		{format: tensor.Q8_0, back: tensor.Q8_0, d: 64, ffn: 96, experts: 12, identities: 4, route: plan.RouteAttr{Used: 4, Scale: 6}},
		{format: tensor.Q8_0, back: tensor.Q8_0, d: 64, ffn: 96, experts: 8, route: plan.RouteAttr{Used: 3, Score: plan.SqrtSoftplus, Normalize: true, Scale: 1.5}, choice: true, glu: plan.GLUAttr{Limit: 2}},
		{format: tensor.F32, back: tensor.F32, d: 37, ffn: 19, experts: 4, route: plan.RouteAttr{Used: 3, Score: plan.SqrtSoftplus, Normalize: true}, given: true},
		{format: tensor.Q8_0, back: tensor.Q4_0, d: 64, ffn: 64, experts: 4, route: plan.RouteAttr{Used: 4, Score: plan.SigmoidEach}, given: true, biases: true},
		{format: tensor.F32, back: tensor.F32, d: 37, ffn: 19, experts: 8, route: plan.RouteAttr{Used: 2, Score: plan.SparseMixer, Jitter: 0.3}},
		{format: tensor.F32, back: tensor.F32, d: 37, ffn: 19, experts: 16, route: plan.RouteAttr{Used: 3, Score: plan.SparseMixer, Jitter: 0.01}},
	} {
		rng := newRand(uint64(400 + i))
		m.name = fmt.Sprintf("%v, %v", m.format, m.route)
		m.make(t, rng, normal(rng, 1))
		for _, tokens := range []int{1, 20} {
			list := ids(rng, tokens, mixtureVocab)
			got := outputsWith(t, b, m.program, list, plan.Limits{Cache: tensor.F32}, 16, 0)
			near(t, fmt.Sprintf("%s, %d tokens", m.name, tokens), got, m.want(list, tensor.F32), 2e-5, 0)
		}
	}
}

// expertBits runs tokens in steps of every size, alone and with other sequences.
func expertBits(t *testing.T, b plan.Backend) {
	for i, m := range []mixture{
		{format: tensor.Q4_K, back: tensor.Q6_K, d: 256, ffn: 256, experts: 8, route: plan.RouteAttr{Used: 2}},
		{format: tensor.MXFP4, back: tensor.MXFP4, d: 96, ffn: 64, experts: 4, route: plan.RouteAttr{Used: 4, Score: plan.SoftmaxChosen}, glu: plan.GLUAttr{Act: plan.QuickGELU, Limit: 2, Shift: 1}, biases: true},
		{format: tensor.BF16, back: tensor.BF16, d: 80, ffn: 56, experts: 8, route: plan.RouteAttr{Used: 2, Score: plan.SigmoidEach}},
		{format: tensor.Q4_0, back: tensor.Q8_0, d: 64, ffn: 32, experts: 64, route: plan.RouteAttr{Used: 8, Normalize: true}},
		{format: tensor.IQ2_XS, back: tensor.Q5_0, d: 256, ffn: 256, experts: 4, route: plan.RouteAttr{Used: 1}},
		{format: tensor.Q8_0, back: tensor.Q8_0, d: 64, ffn: 96, experts: 12, identities: 4, route: plan.RouteAttr{Used: 4}},
		{format: tensor.Q8_0, back: tensor.Q8_0, d: 64, ffn: 96, experts: 6, route: plan.RouteAttr{Used: 4, Score: plan.SqrtSoftplus}, given: true},
		{format: tensor.F8_E4M3_32, back: tensor.F8_E4M3_32, d: 96, ffn: 64, experts: 8, route: plan.RouteAttr{Used: 2}},
	} {
		rng := newRand(uint64(300 + i))
		m.name = fmt.Sprintf("%v, %d experts", m.format, m.experts)
		m.make(t, rng, func(_, e int) float32 { return float32(rng.NormFloat64()) + float32(e%3) }) // some experts have more tokens than others
		list, other := ids(rng, 80, mixtureVocab), ids(rng, 70, mixtureVocab)
		for _, activations := range []tensor.DType{tensor.F32, b.Rounds()} {
			r := runner(t, b, m.program, 240, 3, 80, plan.Limits{Cache: tensor.F32, Activations: activations})
			run := func(chunk int, beside ...*Seq) [][]float32 {
				t.Helper()
				return r.logits(t, list, chunk, beside...)
			}
			want := run(len(list))
			for _, chunk := range longtest.Cases([]int{1, 2, 7, 8, 16, 17, 64, 65}, []int{1, 17, 64}) {
				same(t, fmt.Sprintf("%s, %v activations, steps of %d", m.name, activations, chunk), run(chunk), want)
			}
			same(t, m.name+", beside others", run(64, r.Add(other, 1), r.Add(other[:31], 31)), want)
			same(t, m.name+", beside others in small steps", run(1, r.Add(other, 7), r.Add(other[50:], 64)), want)
		}
	}
}
