package lower

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Product is what the time of a launch of products depends on, besides the number of input rows.
type Product struct {
	Format tensor.DType // of the weights on the device
	Gated  bool         // a gate of Rows rows and as many rows that it gates
	Rows   int          // the sum over all products of the launch
	Cols   int
}

func (p Product) String() string {
	text := fmt.Sprintf("%v %dx%d", p.Format, p.Rows, p.Cols)
	if p.Gated {
		text += " gated"
	}
	return text
}

// A Case is a product and its number of input rows, a power of two: the size of a [Shape].
type Case struct {
	Product
	Input int
}

// A Choice is a kernel for a case. All kernels of a product compute the same bits.
type Choice struct {
	Kernel  string `json:"kernel"`
	Cluster int    `json:"cluster,omitempty"` // blocks of a cluster; 0 if the kernel has no clusters
}

func (c Choice) String() string {
	if c.Cluster == 0 {
		return c.Kernel
	}
	return fmt.Sprintf("%s cluster %d", c.Kernel, c.Cluster)
}

// A Table holds the fastest kernels that were measured on a device.
type Table map[Case]Choice

// productOf returns the product of a stage of [plan.Linear]. It reports false if the stage has no
// choice of kernels, because it multiplies float32, or is in no table, because it applies an
// activation without a gate.
func productOf(s *fuse.Stage, lim *plan.Limits) (Product, bool) {
	w := s.Node().Weight
	p := Product{Format: weights.LaidAs(w.DType, lim), Gated: s.GLU != nil, Rows: w.Rows(), Cols: w.Cols()}
	if !p.Gated {
		for _, n := range s.Nodes[1:] {
			p.Rows += n.Weight.Rows()
		}
	}
	return p, arithmetic(w, lim) != inFloats && !activates(s.Maps[0])
}

// Products returns the products of p that can be in a table, each with the maximum number of its
// input rows.
func Products(p *plan.Program, lim *plan.Limits) map[Product]int {
	all := map[Product]int{}
	stages := Rules(lim).Stages(p)
	for i := range stages {
		n := stages[i].Node()
		if n.Op != plan.Linear {
			continue
		}
		if of, ok := productOf(&stages[i], lim); ok {
			all[of] = max(all[of], lim.Size(p.Shapes[n.Out][0]))
		}
	}
	return all
}

// variantsOf returns the kernels of products, except those of float32.
func variantsOf(hopper, gated bool) []variant {
	switch {
	case hopper && gated:
		return gatedWide
	case hopper:
		return plainWide
	case gated:
		return gatedVariants
	}
	return plainVariants
}

// Candidates returns the choices for a case that can be the fastest: kernels whose groups of input
// rows are neither far more than the input nor a small part of it.
func Candidates(hopper bool, of Case) (all []Choice) {
	variants := variantsOf(hopper, of.Gated)
	most := variants[len(variants)-1].rows
	for i := range variants {
		v := &variants[i]
		if v.kind == ofRow && of.Input > 1 || v.rows > 16*of.Input || 8*v.rows < min(of.Input, 4*most) {
			continue
		}
		for _, n := range v.clusters() {
			all = append(all, Choice{v.name, n})
		}
	}
	return all
}

// clusters returns the cluster sizes that a table may have for v.
func (v *variant) clusters() []int {
	if v.kind == ofWide {
		return []int{1, 2, 4, segments}
	}
	return []int{0}
}

// Estimate returns the choice for a case without a table.
func (c *Compiler) Estimate(of Case) Choice {
	t := weights.TilingOf(&tensor.Tensor{DType: of.Format, Shape: []int{of.Rows, of.Cols}}, c.Layout.lim)
	k := chooser{c: c, variants: variantsOf(c.Hopper, of.Gated), tiling: &t, units: unitsOf(of.Rows, of.Gated)}
	i, cluster, _ := k.choose(of.Input)
	return Choice{k.variants[i].name, cluster}
}

// A chooser chooses among the kernels of a stage of products.
type chooser struct {
	c        *Compiler
	variants []variant
	product  Product
	tabled   bool // tables can have the product
	normed   bool // only the first variant can compute a single row, whose norm it computes
	tiling   *weights.Tiling
	units    int // of weight rows of wide kernels
}

// A reason says why a kernel is chosen.
type reason string

const (
	isOnly      reason = "" // there is no other
	isEstimated reason = "estimated"
	isMeasured  reason = "measured"
)

// choose returns the index of the variant for a number of input rows, the size of its clusters, and
// the reason. The table decides. Where it has no entry, the smallest variant that has room for all
// rows runs, with the cluster size of the shortest estimated time.
func (k *chooser) choose(input int) (i, cluster int, why reason) {
	if k.normed && input == 1 {
		return 0, 0, isOnly
	}
	if k.tabled {
		if choice, ok := k.c.Table[Case{k.product, input}]; ok {
			if i := slices.IndexFunc(k.variants, func(v variant) bool { return v.name == choice.Kernel }); i >= 0 {
				return i, choice.Cluster, isMeasured
			}
		}
	}
	i = len(k.variants) - 1
	for at, v := range k.variants {
		if input <= v.rows {
			i = at
			break
		}
	}
	v := &k.variants[i]
	if v.kind == ofWide {
		cluster = k.c.estimate(k.tiling, k.jobs(v, input), v.rows)
	}
	return i, cluster, isEstimated
}

// jobs returns the number of jobs of a wide kernel.
func (k *chooser) jobs(v *variant, input int) int { return k.units * ((input + v.rows - 1) / v.rows) }

// describe lists the choices for up to most input rows.
func (k *chooser) describe(most int) string {
	var all []string
	last := ""
	for n := 1; n <= Power(most); n *= 2 {
		i, cluster, why := k.choose(n)
		text, suffix := Choice{k.variants[i].name, cluster}.String(), ""
		if why != isOnly {
			suffix = fmt.Sprintf(" (%s)", why)
		}
		if text+suffix == last {
			continue
		}
		last = text + suffix
		if n > 1 {
			text += fmt.Sprintf(" from %d rows", n)
		}
		all = append(all, text+suffix)
	}
	return strings.Join(all, ", ")
}

// estimate returns the cluster size with the shortest estimated time for the given number of jobs,
// each of at most most input rows. A job occupies a multiprocessor for the longer of the times for
// its bytes and for its products, plus a constant.
func (c *Compiler) estimate(t *weights.Tiling, jobs, most int) int {
	const bytes, products, more = 30, 2100, 2500 // bytes and products in 1/ns; more in ns
	blocks, _ := wideRoom(t, most)
	job := blocks * max(wideRows*t.RowBytes()/bytes, wideRows*t.Cols/products*most)
	best, cluster := math.MaxInt, 0
	for n := 1; n <= segments; n *= 2 {
		at := c.clustersAtOnce(t, most, n)
		if took := (jobs + at - 1) / at * (job/n + more); took < best {
			best, cluster = took, n
		}
	}
	return cluster
}

// clustersAtOnce returns how many clusters of n blocks of a wide kernel, for at most most input
// rows, run at the same time.
func (c *Compiler) clustersAtOnce(t *weights.Tiling, most, n int) int {
	blocks, _ := wideRoom(t, most)
	processors := c.Multiprocessors
	if n == segments {
		processors = processors / 16 * 16 // a cluster may use 16 of 16 or 18
	}
	return max(1, blocks*processors/n)
}

// wideGrid returns the grid of a wide kernel for the given number of jobs, each of at most most
// input rows, in clusters of n blocks.
func (c *Compiler) wideGrid(t *weights.Tiling, jobs, most, n int) driver.Dim3 {
	return driver.Dim3{X: n * min(jobs, c.clustersAtOnce(t, most, n))}
}
