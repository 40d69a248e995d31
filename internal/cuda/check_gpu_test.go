//go:build gpu

package cuda

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/check"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// checks returns options for both checks; the check of operations covers the given number of steps.
func checks(steps int, seen func(nodes []*plan.Node, drift float64)) check.Options {
	return check.Options{Argmax: true, Reference: steps, Seen: seen, NewReference: func(p *plan.Program, l plan.Limits) (check.Reference, error) {
		return cpu.NewReplay(p, l, 0)
	}}
}

// An answer is one sequence of an executable under check.
type answer struct {
	t        *testing.T
	p        *plan.Program
	exe      plan.Executable
	lim      plan.Limits
	length   int
	position int
}

// newAnswer compiles p on b for one sequence of length tokens.
func newAnswer(t *testing.T, b plan.Backend, p *plan.Program, length int, base plan.Limits) *answer {
	t.Helper()
	a := &answer{t: t, p: p, length: length, lim: plantest.LimitsFor(p, 64, 1, length, 32, base)}
	var err error
	if a.exe, err = b.Compile(t.Context(), p, a.lim, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.exe.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// step runs tokens and samples the one after them.
func (a *answer) step(tokens []int32, s sample.Params) (int32, error) {
	a.t.Helper()
	b := &plan.Batch{Tokens: tokens, Start: []int32{0, int32(len(tokens))}, Lengths: []int32{int32(a.length)}, Rows: []plan.Row{{Token: int32(len(tokens) - 1), Want: plan.WantToken, Sampling: s}}}
	for i := range tokens {
		b.Positions = append(b.Positions, int32(a.position+i))
	}
	for g := range a.p.Groups {
		table := plan.PageTable{Start: []int32{0, int32(a.lim.Pages[g])}, First: []int32{0}}
		for i := range a.lim.Pages[g] {
			table.Pages = append(table.Pages, int32(i))
		}
		b.Tables = append(b.Tables, table)
	}
	a.position += len(tokens)
	under, err := a.exe.Submit(b)
	if err != nil {
		a.t.Fatal(err)
	}
	defer under.Release()
	res, err := under.Wait(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	if res.Err != nil && res.Err[0] != nil {
		return -1, res.Err[0]
	}
	return res.Tokens[0], nil
}

// damaged returns a function that changes the first places matches of a pattern in a kernel, or all
// if places is -1.
func damaged(family, kernel, pattern, by string, places int) func(string, []byte) []byte {
	place := regexp.MustCompile(pattern)
	return func(f string, text []byte) []byte {
		if f != family {
			return text
		}
		entry := "\n.visible .entry " + kernel + "("
		before, after, _ := strings.Cut(string(text), entry)
		body, rest, found := strings.Cut(after, "\n}\n")
		all := place.FindAllStringSubmatchIndex(body, places)
		if !found || all == nil {
			panic("there is no such place in " + kernel)
		}
		var with []byte
		end := 0
		for _, at := range all {
			with = place.ExpandString(append(with, body[end:at[0]]...), by, body, at)
			end = at[1]
		}
		return []byte(before + entry + string(with) + body[end:] + "\n}\n" + rest)
	}
}

// Each check finds a broken kernel and names it.
func TestBrokenKernels(t *testing.T) {
	for _, base := range []bool{false, true} {
		// In half of the columns, rows 8 to 15 of a tile are multiplied instead of rows 0 to 7.
		product := damaged("weights_q4_k", "linear_1", `(mma\.sync\S+ \{[^}]*\}, )\{(%r\d+),(%r\d+),`, "${1}{${3},${3},", -1)
		// The first of every four logits is never the best.
		choice := damaged("sample", "survey", `\bmin\.u64`, "max.u64", 1)
		for _, test := range []struct {
			name    string
			ptx     func(string, []byte) []byte
			options check.Options
			drifts  bool
			chooses bool
		}{
			{"nothing", nil, checks(40, nil), false, false},
			{"a product", product, checks(40, nil), true, false},
			{"a product, choices checked", product, check.Options{Argmax: true}, false, false},
			{"the choice", choice, checks(40, nil), false, true},
		} {
			b := openGPU(t, Options{Base: base, PTX: test.ptx})
			p := plantest.Model(t, nil)
			a := newAnswer(t, check.Wrap(b, test.options), p, 64, plan.Limits{Cache: tensor.F16, Activations: tensor.F16})
			drifts, chooses := 0, 0
			for i := range 40 {
				_, err := a.step([]int32{int32(i * 5 % 97)}, sample.Params{})
				var drift *check.DriftError
				var token *check.TokenError
				switch {
				case errors.As(err, &drift):
					if drifts++; i == 0 {
						fmt.Println(err)
					}
					if n := drift.Nodes[len(drift.Nodes)-1]; n.Op != plan.Linear || n.Weight.DType != tensor.Q4_K || n.Layer != 0 {
						t.Errorf("%s is broken: %v", test.name, err)
					}
				case errors.As(err, &token):
					if chooses++; chooses == 1 {
						fmt.Println(err)
					}
				case err != nil:
					t.Errorf("%s is broken: %v", test.name, err)
				}
			}
			if (drifts > 0) != test.drifts || test.drifts && drifts != 40 || (chooses > 0) != test.chooses {
				t.Errorf("%s is broken: of 40 steps %d drift, and %d choose another token", test.name, drifts, chooses)
			}
		}
	}
}

// TestChecks checks 1,000 tokens, and the operations of the first steps, of the models that MODELS
// names. It logs the largest drift of operations, relative to the tolerance.
func TestChecks(t *testing.T) {
	b := openGPU(t, Options{})
	eachModel(t, func(t *testing.T, p *plan.Program) {
		for _, base := range []plan.Limits{{Cache: tensor.F16, Activations: tensor.F16}, {Cache: tensor.Q8_0, Activations: tensor.F16}, {Cache: tensor.F8_E4M3, Activations: tensor.F16}, {Cache: tensor.F32}} {
			found := map[string]float64{}
			a := newAnswer(t, check.Wrap(b, checks(5, func(nodes []*plan.Node, drift float64) {
				n := nodes[len(nodes)-1]
				name := n.Op.String()
				for _, n := range nodes {
					if ws := n.Tensors(); n.Op == plan.Linear || n.Op == plan.Experts {
						name += " " + ws[0].DType.String()
					}
				}
				found[name] = max(found[name], drift)
			})), p, 1100, base)
			prompt := make([]int32, 13)
			for i := range prompt {
				prompt[i] = int32(1000+i*977) % int32(p.Vocab)
			}
			next, err := a.step(prompt, sample.Params{})
			for i := 1; i < 1000 && err == nil; i++ {
				s := sample.Params{}
				if i%2 == 1 {
					s = sample.Params{Temperature: 1, TopP: 0.95, TopK: 40 * (i % 3), Seed: uint64(i)}
				}
				next, err = a.step([]int32{next}, s)
			}
			if err != nil {
				t.Errorf("%v cache: %v", base.Cache, err)
			}
			fmt.Printf("  %v cache, %v activations: %d tokens, the largest drifts\n", base.Cache, base.Activations, a.position-len(prompt)+1)
			for _, name := range slices.Sorted(maps.Keys(found)) {
				fmt.Printf("    %-44s %.3f\n", name, found[name])
			}
		}
	})
}
