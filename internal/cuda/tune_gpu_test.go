//go:build gpu

package cuda

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/measure"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// Products have the same bits by every kernel that a table may choose.
func TestGPUChoiceBits(t *testing.T) {
	for name, o := range map[string]Options{"hopper": {}, "base": {Base: true}} {
		for _, d := range plantest.Dtypes {
			if d == tensor.F32 || weights.LaidAs(d, &plan.Limits{Activations: tensor.F16}) != d {
				continue // there is no choice, or it is that of another format
			}
			t.Run(name+"/"+d.String(), func(t *testing.T) { sameByChoice(t, openGPU(t, o), d, 1, 8, 128) })
		}
	}
}

// The tuner measures a product of a real size, and its result is a valid table.
func TestGPUTune(t *testing.T) {
	b := openGPU(t, Options{Tables: t.TempDir()})
	before := b.Memory()
	product := lower.Product{Format: tensor.Q4_K, Gated: true, Rows: 14336, Cols: 4096}
	all, err := measure.Tune(t.Context(), measure.NewBench(b.GPU), map[lower.Product]int{product: tunedTokens}, func(_ int, p lower.ProductTimes) { fmt.Println(p.String()) })
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range all[0].Choices {
		fmt.Printf("  %4d rows: %-28v %8.2f us, estimated %8.2f us\n", c.Input, c.Choice, c.Time, c.Estimated)
		if c.Input != 1<<i || !(c.Time > 0) || c.Time > c.Estimated {
			t.Errorf("a choice that cannot be: %+v", c)
		}
	}
	path, err := b.addToTable(all)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := lower.ReadTable(path, b.Info.Name, b.Digest); err != nil || len(f.Table()) != len(all[0].Choices) {
		t.Errorf("the table is %v, %v", f, err)
	}
	if now := b.Memory(); before.Free-now.Free > 256<<20 { // kernels stay loaded
		t.Errorf("%d bytes free afterwards, %d before", now.Free, before.Free)
	}
}

// TestGPUProducts prints the times of all kernels of the products that PRODUCTS names, for example
// Q4_K:14336x4096:gated,BF16:4096x4096, with the numbers of input rows of ROWS, for example 64,2048,
// of which the names match the expression CHOICES.
func TestGPUProducts(t *testing.T) {
	if os.Getenv("PRODUCTS") == "" {
		t.Skip("PRODUCTS names no products")
	}
	b := measure.NewBench(openGPU(t, Options{}).GPU)
	kernels := regexp.MustCompile(os.Getenv("CHOICES"))
	for _, name := range strings.Split(os.Getenv("PRODUCTS"), ",") {
		var p lower.Product
		format, shape, _ := strings.Cut(name, ":")
		shape, gated, _ := strings.Cut(shape, ":")
		p.Gated = gated == "gated"
		if _, err := fmt.Sscanf(shape, "%dx%d", &p.Rows, &p.Cols); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var err error
		if p.Format, err = tensor.ParseDType(format); err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split(os.Getenv("ROWS"), ",") {
			input, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Begin(t.Context(), p, input); err != nil {
				t.Fatal(err)
			}
			work := 2 * float64(p.Rows) * float64(p.Cols) * float64(input)
			if p.Gated {
				work *= 2
			}
			for i, c := range b.Choices(input) {
				if !kernels.MatchString(c.String()) {
					continue
				}
				r, err := b.Prepare(input, c)
				if err != nil {
					t.Fatal(err)
				}
				var times []time.Duration
				for range 5 {
					took, err := r.Time()
					if err != nil {
						t.Fatal(err)
					}
					times = append(times, took)
				}
				slices.Sort(times)
				estimated := ""
				if i == 0 {
					estimated = ", the estimate's"
				}
				fmt.Printf("%-24v %5d rows: %-32v %9.2f us %6.0f TFLOP/s%s\n", p, input, c, float64(times[2])/1e3, work/times[2].Seconds()/1e12, estimated)
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.End(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestGPUTable measures the usual products and writes the table to the folder that TUNED names.
func TestGPUTable(t *testing.T) {
	if os.Getenv("TUNED") == "" {
		t.Skip("TUNED names no folder")
	}
	b := openGPU(t, Options{Tables: os.Getenv("TUNED")})
	path, err := b.Tune(t.Context(), nil, func(done, all int, text string) { fmt.Printf("%d of %d, %s\n", done, all, text) })
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(path)
}
