package sample

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ranked returns the ids of the allowed tokens, best first.
func ranked(logits []float32, mask []uint32) []int {
	var ids []int
	for i, v := range logits {
		if !math.IsInf(float64(v), -1) && (mask == nil || mask[i/32]&(1<<(i%32)) != 0) {
			ids = append(ids, i)
		}
	}
	slices.SortStableFunc(ids, func(a, b int) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	return ids
}

// byDefinition chooses by the package comment's definition, word for word: it
// sorts everything and multiplies in exact rationals.
func byDefinition(logits []float32, p *Params, mask []uint32, pos int) int {
	ids := ranked(logits, mask)
	if p.Temperature == 0 {
		return ids[0]
	}
	if p.TopK > 0 {
		ids = ids[:min(p.TopK, len(ids))]
	}
	s := newScale(logits[ids[0]], p.Temperature, len(logits))
	weight := func(id int) *big.Rat { return new(big.Rat).SetUint64(s.weight(logits[id])) }
	total := func() *big.Rat {
		sum := new(big.Rat)
		for _, id := range ids {
			sum.Add(sum, weight(id))
		}
		return sum
	}
	share := func(f float32, of *big.Rat) *big.Rat {
		return new(big.Rat).Mul(new(big.Rat).SetFloat64(float64(f)), of)
	}
	if p.TopP > 0 && p.TopP < 1 {
		sum, want, n := new(big.Rat), share(p.TopP, total()), 0
		for n == 0 || sum.Cmp(want) < 0 {
			sum.Add(sum, weight(ids[n]))
			n++
		}
		ids = ids[:n]
	}
	if p.MinP > 0 {
		want := share(p.MinP, weight(ids[0]))
		ids = slices.DeleteFunc(ids, func(id int) bool { return weight(id).Cmp(want) < 0 })
	}
	u := new(big.Rat).SetUint64(uniform(p.Seed, p.Choice, uint64(pos)))
	u.Quo(u, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 64)))
	t := u.Mul(u, total())
	sum := new(big.Rat)
	for _, id := range ids {
		// Against t itself: it exceeds no whole number that its floor does not.
		if sum.Add(sum, weight(id)).Cmp(t) > 0 {
			return id
		}
	}
	panic("the running sum never exceeded its target")
}

// inFloat64 returns the tokens that ordinary floating-point sampling, with
// math.Exp and probabilities that sum to 1, may choose for the same random number:
// usually one, more where a filter's bound or the draw lies within slack.
func inFloat64(logits []float32, p *Params, mask []uint32, pos int) map[int]bool {
	const slack = 1e-9
	all := ranked(logits, mask)
	if p.Temperature == 0 {
		return map[int]bool{all[0]: true}
	}
	if p.TopK > 0 {
		all = all[:min(p.TopK, len(all))]
	}
	probabilities := func(ids []int) []float64 {
		var sum float64
		q := make([]float64, len(ids))
		for i, id := range ids {
			q[i] = math.Exp((float64(logits[id]) - float64(logits[ids[0]])) / float64(p.Temperature))
			sum += q[i]
		}
		for i := range q {
			q[i] /= sum
		}
		return q
	}
	may := map[int]bool{}
	for _, e := range []float64{-slack, 0, slack} {
		ids := all
		if p.TopP > 0 && p.TopP < 1 {
			q, sum, n := probabilities(ids), 0.0, 0
			for n == 0 || n < len(ids) && sum < float64(p.TopP)+e {
				sum += q[n]
				n++
			}
			ids = ids[:n]
		}
		for _, e := range []float64{-slack, 0, slack} {
			q, n := probabilities(ids), len(ids)
			if p.MinP > 0 {
				for n = 1; n < len(ids) && q[n] >= q[0]*(float64(p.MinP)+e); {
					n++
				}
			}
			kept := ids[:n]
			q = probabilities(kept)
			u := float64(uniform(p.Seed, p.Choice, uint64(pos))) * 0x1p-64
			sum := 0.0
			for i, id := range kept {
				if sum-slack <= u && u <= sum+q[i]+slack {
					may[id] = true
				}
				sum += q[i]
			}
		}
	}
	return may
}

// drawLength draws 1 to longest, as likely long as short. A slice of rapid's own
// choice rarely has more than ten elements.
func drawLength(t *rapid.T, longest int) int {
	lengths := []int{1, 2, 3, 31, 32, 33}
	for n := 50; n <= longest; n += 25 {
		lengths = append(lengths, n)
	}
	return rapid.SampledFrom(lengths).Draw(t, "length")
}

func drawCase(t *rapid.T) (logits []float32, p *Params, mask []uint32, pos int) {
	logit := rapid.SampledFrom([]*rapid.Generator[float32]{
		rapid.Float32Range(-8, 8),
		rapid.Float32Range(-1e-3, 1e-3),
		rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32),
		rapid.SampledFrom([]float32{-1, 0, float32(math.Copysign(0, -1)), 1, 1.5}), // ties
	}).Draw(t, "kind")
	vocab := drawLength(t, 200)
	logits = rapid.SliceOfN(rapid.OneOf(logit, logit, logit, rapid.Just(float32(math.Inf(-1)))), vocab, vocab).Draw(t, "logits")
	keep := rapid.IntRange(0, vocab-1).Draw(t, "finite")
	if math.IsInf(float64(logits[keep]), -1) {
		logits[keep] = 0
	}
	if rapid.Bool().Draw(t, "masked") {
		mask = rapid.SliceOfN(rapid.Uint32(), (vocab+31)/32, (vocab+31)/32+2).Draw(t, "mask")
		mask[keep/32] |= 1 << (keep % 32)
	}
	share := func(name string) float32 {
		return rapid.OneOf(
			rapid.SampledFrom([]float32{0, 1, 0.5, 0.25, 0.1, math.SmallestNonzeroFloat32}),
			rapid.Float32Range(0, 1),
		).Draw(t, name)
	}
	p = &Params{
		Temperature: rapid.OneOf(
			rapid.Float32Range(0.1, 3),
			rapid.SampledFrom([]float32{0, 1, math.SmallestNonzeroFloat32, math.MaxFloat32}),
		).Draw(t, "temperature"),
		TopK:   rapid.SampledFrom([]int{0, 0, 1, 2, 5, 40, math.MaxInt}).Draw(t, "top-k"),
		TopP:   share("top-p"),
		MinP:   share("min-p"),
		Seed:   rapid.Uint64().Draw(t, "seed"),
		Choice: rapid.Uint32().Draw(t, "choice"),
	}
	return logits, p, mask, rapid.Int().Draw(t, "pos")
}

func TestTokenFollowsTheDefinition(t *testing.T) {
	var s Sampler
	rapid.Check(t, func(t *rapid.T) {
		logits, p, mask, pos := drawCase(t)
		before := slices.Clone(logits)
		got, err := s.Token(logits, p, mask, pos)
		if err != nil {
			t.Fatal(err)
		}
		if want := byDefinition(logits, p, mask, pos); int(got) != want {
			t.Errorf("Token = %d, want %d", got, want)
		}
		if may := inFloat64(logits, p, mask, pos); !may[int(got)] {
			t.Errorf("Token = %d, floating point may choose %v", got, may)
		}
		if !slices.EqualFunc(logits, before, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
			t.Error("Token changed the logits")
		}
	})
}

// A vocabulary large enough for the shortcuts, its logits in orders that suit them
// and that do not.
func TestTokenOfALargeVocabulary(t *testing.T) {
	const vocab = 4000
	ascending := make([]float32, vocab)
	for i := range ascending {
		ascending[i] = float32(i) / 300
	}
	descending := slices.Clone(ascending)
	slices.Reverse(descending)
	scattered := make([]float32, vocab)
	for i := range scattered {
		scattered[i] = ascending[i*1237%vocab]
	}
	teeth := make([]float32, vocab) // the largest are never, or always, every 16th
	steps := make([]float32, vocab) // many equals
	lonely := make([]float32, vocab)
	for i := range vocab {
		teeth[i] = float32(i % 16)
		steps[i] = float32(i / 500)
		lonely[i] = float32(math.Inf(-1))
	}
	lonely[3210], lonely[17], lonely[1600] = 1, 2, 1
	sparse := make([]uint32, vocab/32)
	for i := range sparse {
		sparse[i] = 1 << (i % 32)
	}
	var s Sampler
	for name, logits := range map[string][]float32{
		"ascending": ascending, "descending": descending, "scattered": scattered,
		"teeth": teeth, "steps": steps, "lonely": lonely,
	} {
		for _, k := range []int{0, 1, 2, 15, 16, 17, 40, 61, 62, 63, 64, 250, 251, 3999, 4000} {
			for _, mask := range [][]uint32{nil, sparse} {
				if mask != nil && name == "lonely" {
					mask = slices.Clone(mask)
					mask[3210/32] |= 1 << (3210 % 32)
				}
				for pos := range 3 {
					p := &Params{Temperature: 2, TopK: k, TopP: []float32{0, 0.9, 0.5}[pos], Seed: uint64(k)}
					got, err := s.Token(logits, p, mask, pos)
					if err != nil {
						t.Fatal(err)
					}
					if want := byDefinition(logits, p, mask, pos); int(got) != want {
						t.Errorf("%s, %+v, masked %v, at %d: Token = %d, want %d", name, *p, mask != nil, pos, got, want)
					}
				}
			}
		}
	}
}
