package sample

import (
	"cmp"
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

// adjustedByDefinition returns the logits after adjustments. An operation in float64 followed by
// one rounding to float32 equals the operation in float32, because float32 has less than half the
// digits of float64.
func adjustedByDefinition(logits []float32, p *Params, list []Adjustment, last int32) []float32 {
	round := func(v float64) float64 {
		if r := float32(v); !math.IsInf(float64(r), 0) {
			return float64(r)
		}
		return math.Copysign(math.MaxFloat32, v)
	}
	known := map[int32]Adjustment{}
	for _, a := range list {
		known[a.Token] = a
	}
	if last >= 0 {
		a := known[last]
		a.Count++
		known[last] = a
	}
	adjusted := slices.Clone(logits)
	for id, a := range known {
		l := float64(logits[id])
		if math.IsInf(l, -1) {
			continue
		}
		if math.IsInf(float64(a.Bias), -1) {
			adjusted[id] = a.Bias
			continue
		}
		l = round(l + float64(a.Bias))
		if r := float64(p.Repetition); r != 0 && (a.Prompt || a.Count > 0) {
			if l > 0 {
				l = round(l / r)
			} else {
				l = round(l * r)
			}
		}
		if a.Count > 0 {
			l = round(l - round(float64(p.Frequency)*float64(float32(a.Count))))
			l = round(l - float64(p.Presence))
		}
		adjusted[id] = float32(l)
	}
	return adjusted
}

// typicalByDefinition returns the tokens of ids that typical keeps, in their order.
func typicalByDefinition(logits []float32, ids []int, p *Params, s scale) []int {
	information := map[int]*big.Int{}
	a, w := new(big.Int), new(big.Int)
	ids = slices.DeleteFunc(slices.Clone(ids), func(id int) bool { return s.weight(logits[id]) == 0 })
	for _, id := range ids {
		x := new(big.Float).SetFloat64((s.best - float64(logits[id])) / s.temperature)
		information[id], _ = x.SetMantExp(x, 20).Int(nil)
		weight := new(big.Int).SetUint64(s.weight(logits[id]))
		w.Add(w, weight)
		a.Add(a, weight.Rsh(weight.Mul(weight, information[id]), 20))
	}
	if a.BitLen() > 63 || w.BitLen() > 63 {
		panic("a sum exceeds 63 bits")
	}
	mean := new(big.Int).Lsh(a, 20)
	mean.Quo(mean, w)
	byDistance := slices.Clone(ids)
	slices.SortFunc(byDistance, func(i, j int) int {
		di, dj := new(big.Int).Sub(information[i], mean), new(big.Int).Sub(information[j], mean)
		if c := di.CmpAbs(dj); c != 0 {
			return c
		}
		return i - j
	})
	want := new(big.Rat).Mul(new(big.Rat).SetFloat64(float64(p.Typical)), new(big.Rat).SetInt(w))
	sum, kept := new(big.Rat), map[int]bool{}
	for _, id := range byDistance {
		if len(kept) > 0 && sum.Cmp(want) >= 0 {
			break
		}
		kept[id] = true
		sum.Add(sum, new(big.Rat).SetUint64(s.weight(logits[id])))
	}
	return slices.DeleteFunc(ids, func(id int) bool { return !kept[id] })
}

// byDefinition chooses a token by the package comment's definition, word for word: it sorts
// everything and multiplies in exact rationals.
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
	if p.Typical > 0 && p.Typical < 1 {
		ids = typicalByDefinition(logits, ids, p, s)
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
		want := share(p.MinP, weight(ids[0])) // the largest weight kept so far
		ids = slices.DeleteFunc(ids, func(id int) bool { return weight(id).Cmp(want) < 0 })
	}
	u := new(big.Rat).SetUint64(uniform(p.Seed, p.Choice, uint64(pos)))
	u.Quo(u, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 64)))
	t := u.Mul(u, total())
	sum := new(big.Rat)
	for _, id := range ids {
		// Compares with t itself: an integer that exceeds floor(t) also exceeds t.
		if sum.Add(sum, weight(id)).Cmp(t) > 0 {
			return id
		}
	}
	panic("the running sum never exceeded its target")
}

// inFloat64 returns the tokens that ordinary floating-point sampling, with math.Exp and
// probabilities that sum to 1, may choose for the same random number: usually one; more if a
// filter's bound or the random number is within slack.
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

// drawLength draws 1 to longest, long and short ones equally likely. rapid's own slices rarely have
// more than ten elements.
func drawLength(t *rapid.T, longest int) int {
	lengths := []int{1, 2, 3, 31, 32, 33}
	for n := 50; n <= longest; n += 25 {
		lengths = append(lengths, n)
	}
	return rapid.SampledFrom(lengths).Draw(t, "length")
}

// drawAdjustments draws a list of adjustments for a vocabulary and the token that was chosen last.
// The token keep is not forbidden.
func drawAdjustments(t *rapid.T, vocab, keep int) (list []Adjustment, last int32) {
	bias := rapid.OneOf(
		rapid.Float32Range(-10, 10), rapid.Just(float32(0)),
		rapid.SampledFrom([]float32{-math.MaxFloat32, math.MaxFloat32, 100, -100, 1e-40, float32(math.Inf(-1))}),
	)
	for id := range vocab {
		if rapid.IntRange(0, 2).Draw(t, "adjusted") > 0 {
			continue
		}
		a := Adjustment{Token: int32(id), Bias: bias.Draw(t, "bias"), Prompt: rapid.Bool().Draw(t, "prompt")}
		a.Count = rapid.SampledFrom([]int32{0, 0, 1, 2, 7, 1<<24 + 1, math.MaxInt32 - 1}).Draw(t, "count")
		if id == keep && a.Bias < -math.MaxFloat32 {
			a.Bias = -1
		}
		list = append(list, a)
	}
	return list, int32(rapid.IntRange(-1, vocab-1).Draw(t, "last"))
}

func drawPenalties(t *rapid.T, p *Params) {
	penalty := rapid.OneOf(rapid.Just(float32(0)), rapid.Float32Range(-2, 2), rapid.SampledFrom([]float32{-100, 100, 1e-40}))
	p.Repetition = rapid.OneOf(rapid.SampledFrom([]float32{0, 1, leastRepetition, mostRepetition}), rapid.Float32Range(0.5, 2)).Draw(t, "repetition")
	p.Frequency, p.Presence = penalty.Draw(t, "frequency"), penalty.Draw(t, "presence")
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

// Adjustments of every kind, with typical sampling and all other filters.
func TestAdjustedTokenFollowsTheDefinition(t *testing.T) {
	var s Sampler
	rapid.Check(t, func(t *rapid.T) {
		logits, p, mask, pos := drawCase(t)
		p.Typical = rapid.OneOf(rapid.SampledFrom([]float32{0, 0, 1, 0.5, 0.2, 0.9, math.SmallestNonzeroFloat32}), rapid.Float32Range(0, 1)).Draw(t, "typical")
		drawPenalties(t, p)
		keep := slices.IndexFunc(logits, func(v float32) bool { return v >= -math.MaxFloat32 })
		if mask != nil {
			mask[keep/32] |= 1 << (keep % 32)
		}
		list, last := drawAdjustments(t, len(logits), keep)
		before, listBefore := slices.Clone(logits), slices.Clone(list)
		got, err := s.Token(logits, p, mask, list, last, pos)
		if err != nil {
			t.Fatal(err)
		}
		if want := byDefinition(adjustedByDefinition(logits, p, list, last), p, mask, pos); int(got) != want {
			t.Errorf("Token = %d, want %d", got, want)
		}
		if !slices.EqualFunc(logits, before, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) || !slices.Equal(list, listBefore) {
			t.Error("Token changed its arguments")
		}
	})
}

// Typical sampling keeps the same tokens as the authors' definition in float64, unless two
// distances, or a sum and its bound, are too close to tell.
func TestTypicalIsLocallyTypical(t *testing.T) {
	var s Sampler
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		vocab := drawLength(t, 200)
		logits := rapid.SliceOfN(rapid.Float32Range(-8, 8), vocab, vocab).Draw(t, "logits")
		share := rapid.Float32Range(0.01, 0.99).Draw(t, "share")
		temperature := rapid.Float32Range(0.3, 3).Draw(t, "temperature")
		best := slices.Max(logits)
		var z, entropy, distances = 0.0, 0.0, make([]float64, vocab)
		probabilities := make([]float64, vocab)
		for i, l := range logits {
			probabilities[i] = math.Exp(float64(l-best) / float64(temperature))
			z += probabilities[i]
		}
		for i := range probabilities {
			probabilities[i] /= z
			entropy -= probabilities[i] * math.Log(probabilities[i])
		}
		order := make([]int, vocab)
		for i := range order {
			order[i] = i
			distances[i] = math.Abs(-math.Log(probabilities[i]) - entropy)
		}
		slices.SortFunc(order, func(i, j int) int { return cmp.Compare(distances[i], distances[j]) })
		var want []int32
		sum := 0.0
		for n, i := range order {
			if n > 0 && distances[i]-distances[order[n-1]] < 1e-5 || math.Abs(sum-float64(share)) < 1e-5 {
				return
			}
			if sum < float64(share) {
				want = append(want, int32(i))
			}
			sum += probabilities[i]
		}
		told++
		sc := newScale(best, temperature, vocab)
		var got []int32
		for _, c := range s.typical(s.weighted(logits, nil, sc), logits, sc, share) {
			got = append(got, c.id())
			if c.rank != rank(logits[c.id()], c.id()) || c.weight != sc.weight(logits[c.id()]) {
				t.Errorf("token %d came back as %+v", c.id(), c)
			}
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("kept are %v, want %v", got, want)
		}
	})
	if told == 0 {
		t.Error("every case was too close to tell")
	}
}

func TestTokenFollowsTheDefinition(t *testing.T) {
	var s Sampler
	rapid.Check(t, func(t *rapid.T) {
		logits, p, mask, pos := drawCase(t)
		before := slices.Clone(logits)
		got, err := s.Token(logits, p, mask, nil, -1, pos)
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

// A vocabulary large enough for the shortcuts, with logits in orders that help them and orders that
// do not.
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
	teeth := make([]float32, vocab) // every 16th is the largest, or never
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
					p := &Params{Temperature: 2, TopK: k, Typical: []float32{0, 0.6, 0.2}[(pos+k)%3], TopP: []float32{0, 0.9, 0.5}[pos], Seed: uint64(k)}
					got, err := s.Token(logits, p, mask, nil, -1, pos)
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
