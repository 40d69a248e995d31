package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/cuda/lower"
)

// A Bench measures the kernels of one product at a time.
type Bench interface {
	// Begin prepares a product with up to most input rows.
	Begin(ctx context.Context, p lower.Product, most int) error
	// Choices returns the choices for a number of input rows that can be the fastest, the one
	// without a table first.
	Choices(input int) []lower.Choice
	// Prepare prepares launches of a choice. Those of other numbers of input rows must be closed.
	Prepare(input int, c lower.Choice) (Run, error)
	// End frees the product.
	End() error
}

// A Run is a sequence of launches of one kernel.
type Run interface {
	Time() (time.Duration, error) // of a launch
	Close() error
}

// How Tune measures: choices that take hopeless times as long as the fastest in a first run are
// dropped; the median of rounds counts; and another choice than the one without a table must be
// faster by the margin.
const (
	hopeless  = 1.5
	rounds    = 7
	margin    = 0.02
	mostInput = 2048 // rows
)

// Tune measures the choices for products, each with up to the given number of input rows, and
// returns the fastest ones for 1, 2, 4 and so on up to 2,048 rows. It calls report after each
// product.
func Tune(ctx context.Context, b Bench, products map[lower.Product]int, report func(done int, t lower.ProductTimes)) (all []lower.ProductTimes, err error) {
	ordered := slices.SortedFunc(maps.Keys(products), func(a, b lower.Product) int {
		return cmp.Or(cmp.Compare(a.Format, b.Format), cmp.Compare(a.Cols, b.Cols), cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.String(), b.String()))
	})
	for _, p := range ordered {
		t, err := tuneProduct(ctx, b, p, products[p])
		if err != nil {
			return nil, fmt.Errorf("%v: %w", p, err)
		}
		all = append(all, t)
		report(len(all), t)
	}
	return all, nil
}

func tuneProduct(ctx context.Context, b Bench, p lower.Product, most int) (t lower.ProductTimes, err error) {
	most = min(lower.Power(most), mostInput)
	if err := b.Begin(ctx, p, most); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, b.End()) }()
	var choices []lower.ChoiceTime
	for input := 1; input <= most; input *= 2 {
		c, err := tuneCase(ctx, b, input)
		if err != nil {
			return t, fmt.Errorf("%d rows: %w", input, err)
		}
		choices = append(choices, c)
	}
	return lower.NewProductTimes(p, choices), nil
}

// tuneCase returns the choice for one number of input rows.
func tuneCase(ctx context.Context, b Bench, input int) (chosen lower.ChoiceTime, err error) {
	choices := b.Choices(input)
	runs, times := make([]Run, len(choices)), make([][]time.Duration, len(choices))
	defer func() {
		for _, r := range runs {
			if r != nil {
				err = errors.Join(err, r.Close())
			}
		}
	}()
	first := make([]time.Duration, len(choices))
	for i, c := range choices {
		if err := ctx.Err(); err != nil {
			return chosen, err
		}
		if runs[i], err = b.Prepare(input, c); err != nil {
			return chosen, fmt.Errorf("%v: %w", c, err)
		}
		if first[i], err = runs[i].Time(); err != nil {
			return chosen, fmt.Errorf("%v: %w", c, err)
		}
	}
	limit := time.Duration(hopeless * float64(slices.Min(first)))
	// One after another, so that a clock that changes changes all alike.
	for range rounds {
		for i, r := range runs {
			if i > 0 && first[i] > limit {
				continue
			}
			if err := ctx.Err(); err != nil {
				return chosen, err
			}
			d, err := r.Time()
			if err != nil {
				return chosen, fmt.Errorf("%v: %w", choices[i], err)
			}
			times[i] = append(times[i], d)
		}
	}
	i, took := fastest(times)
	return lower.ChoiceTime{Input: input, Choice: choices[i], Time: microseconds(took[i]), Estimated: microseconds(took[0])}, nil
}

// fastest returns the index of the smallest median, or 0 unless that is greater by the margin, and
// the medians. What has no times is never the fastest.
func fastest(times [][]time.Duration) (best int, medians []time.Duration) {
	medians = make([]time.Duration, len(times))
	for i, all := range times {
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		medians[i] = all[len(all)/2]
		if medians[i] < medians[best] {
			best = i
		}
	}
	if float64(medians[0]) <= float64(medians[best])*(1+margin) {
		best = 0
	}
	return best, medians
}

// microseconds returns d in hundredths of a microsecond.
func microseconds(d time.Duration) float64 { return float64(d.Round(10*time.Nanosecond)) / 1e3 }
