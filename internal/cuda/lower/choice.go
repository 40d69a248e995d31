package lower

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/cuda/device"
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
	Kernel  string  `json:"kernel"`
	Cluster Cluster `json:"cluster,omitzero"` // zero if the kernel has no clusters
}

func (c Choice) String() string {
	if c.Cluster == (Cluster{}) {
		return c.Kernel
	}
	return fmt.Sprintf("%s cluster %v", c.Kernel, c.Cluster)
}

// A Cluster is the number of blocks of a cluster along each dimension; see kernels/wide.cuh.
type Cluster struct {
	Split int // blocks that divide the columns of a job
	Parts int // blocks with different rows of the input and the same rows of weights
}

func (c Cluster) String() string { return fmt.Sprintf("%dx%d", c.Split, c.Parts) }

// MarshalText implements [encoding.TextMarshaler].
func (c Cluster) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Cluster) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscanf(string(text), "%dx%d", &c.Split, &c.Parts); err != nil || c.String() != string(text) {
		return fmt.Errorf("cluster is %q; it must be two numbers of blocks, for example 8x1", text)
	}
	return nil
}

// blocks returns the number of blocks of a cluster.
func (c Cluster) blocks() int { return c.Split * c.Parts }

// dim returns the dimensions of a launch.
func (c Cluster) dim() driver.Dim3 { return driver.Dim3{X: c.Split, Y: c.Parts} }

// A Table holds the fastest kernels that were measured on a device.
type Table map[Case]Choice

// productOf returns the product of a stage of [plan.Linear]. It reports false if the stage has no
// choice of kernels, because it multiplies float32, or is in no table, because it applies an
// activation without a gate or computes a part of a sum.
func productOf(s *fuse.Stage, lim *plan.Limits) (Product, bool) {
	w := s.Node().Weight
	p := Product{Format: weights.LaidAs(w.DType, lim), Gated: s.GLU != nil, Rows: w.Rows(), Cols: w.Cols()}
	if !p.Gated {
		for _, n := range s.Nodes[1:] {
			p.Rows += n.Weight.Rows()
		}
	}
	return p, arithmetic(w, lim) != inFloats && !activates(s.Maps[0]) && s.Node().Summed() == nil
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
		for _, part := range byFormat(&stages[i]) {
			if of, ok := productOf(&part, lim); ok {
				all[of] = max(all[of], lim.Size(p.Shapes[n.Out][0]))
			}
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
		for _, n := range v.clusters(of.Format) {
			all = append(all, Choice{v.name, n})
		}
	}
	return all
}

// clusters returns the cluster sizes that a table may have for v.
func (v *variant) clusters(d tensor.DType) []Cluster {
	if v.kind == ofWide {
		return wideClusters(sharesCopies(d))
	}
	return []Cluster{{}}
}

// sharesCopies reports whether blocks of a wide kernel can share copies of weights of the given
// format; see kernels/wide.cuh.
func sharesCopies(d tensor.DType) bool { return d == tensor.F16 || d == tensor.BF16 }

// wideClusters returns the clusters of a wide kernel, of at most [device.MaxCluster] blocks.
func wideClusters(shares bool) []Cluster {
	all := []Cluster{{1, 1}, {2, 1}, {4, 1}, {segments, 1}}
	if shares {
		all = append(all, Cluster{1, 2})
	}
	return all
}

// Estimate returns the choice for a case without a table.
func (c *Compiler) Estimate(of Case) Choice {
	t := tilingOf(of.Product, c.Layout.lim)
	k := chooser{c: c, variants: variantsOf(c.Hopper, of.Gated), tiling: t, units: unitsOf(of.Rows, of.Gated), shares: sharesCopies(t.Format), segments: segments}
	i, cluster, _ := k.choose(of.Input)
	return Choice{k.variants[i].name, cluster}
}

// tilingOf returns the tiling of the weights of p, which are one tensor.
func tilingOf(p Product, lim *plan.Limits) *weights.Tiling {
	t := weights.TilingOf(&tensor.Tensor{DType: p.Format, Shape: []int{p.Rows, p.Cols}}, lim)
	return &t
}

// A chooser chooses among the kernels of a stage of products.
type chooser struct {
	c        *Compiler
	variants []variant
	product  Product
	tabled   bool // tables can have the product
	normed   bool // only the first variant can compute a single row, whose norm it computes
	tiling   *weights.Tiling
	units    int  // of weight rows of wide kernels
	shares   bool // blocks can share copies of weights
	segments int  // of the columns
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
// rows runs, with the cluster of the shortest estimated time. The next smaller variant runs if that
// is faster, but not if two of its blocks share a multiprocessor: a kernel that begins while the
// previous one ends would put both on the few multiprocessors that are free, and leave others idle.
func (k *chooser) choose(input int) (i int, cluster Cluster, why reason) {
	if k.normed && input == 1 {
		return 0, Cluster{}, isOnly
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
	best := math.MaxInt
	for _, at := range []int{i, i - 1} {
		if at < 0 || k.variants[at].kind != ofWide {
			break
		}
		v := &k.variants[at]
		if blocks, _ := wideRoom(k.tiling, v.rows); at < i && blocks > 1 {
			break
		}
		of, took := k.c.estimate(k.tiling, k.units, k.parts(v, input), v.rows, k.segments, k.shares)
		if took < best {
			i, cluster, best = at, of, took
		}
	}
	return i, cluster, isEstimated
}

// parts returns the number of parts of the input of a wide kernel.
func (k *chooser) parts(v *variant, input int) int { return (input + v.rows - 1) / v.rows }

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

// A wideTime is what the time of a job of a wide kernel consists of, in nanoseconds: of a column and
// of a byte of its weights, and of the rest. More comes to a column and to the rest if two blocks
// share a multiprocessor.
type wideTime struct{ column, byte, rest, sharedColumn, sharedRest float64 }

// wideTimes are the times of wide kernels by the number of input rows, fitted to measurements of
// Q4_K, Q6_K and BF16 on an H200; see docs/log.md.
var wideTimes = map[int]wideTime{
	16:  {2.53, .0121, 1670, 2.0, 680},
	32:  {2.39, .0164, 2600, 2.43, 1300},
	64:  {4.04, .0067, 3020, 0, 0},
	128: {5.60, .0067, 6370, 0, 0},
}

// copyingTogether is the time in nanoseconds that a job takes longer if its blocks share copies.
const copyingTogether = 1000

// estimate returns the cluster with the shortest estimated time, and that time in nanoseconds, for
// the given numbers of units of weight rows, parts of the input, each of at most most rows, and
// segments of the columns. Blocks can share copies of weights if shares is true.
func (c *Compiler) estimate(t *weights.Tiling, units, parts, most, segments int, shares bool) (best Cluster, took int) {
	blocks, _ := wideRoom(t, most)
	times, bytes := wideTimes[most], wideRows*t.RowBytes()
	took = math.MaxInt
	for _, of := range wideClusters(shares && parts > 1) {
		if of.Split > segments {
			continue
		}
		jobs, at := of.jobs(units, parts), c.clustersAtOnce(t, most, of)
		columns, rest := times.column, times.rest
		if blocks == 2 && jobs*of.blocks() > c.Multiprocessors {
			columns, rest = columns+times.sharedColumn, rest+times.sharedRest
		}
		if of.Parts > 1 {
			rest += copyingTogether
		}
		job := (columns*float64(t.Cols)+times.byte*float64(bytes)/float64(of.Parts))/float64(of.Split) + rest
		if n := (jobs + at - 1) / at * int(job); n < took {
			best, took = of, n
		}
	}
	return best, took
}

// jobs returns the number of jobs of clusters for the given numbers of units of weight rows and
// parts of the input.
func (c Cluster) jobs(units, parts int) int { return units * ((parts + c.Parts - 1) / c.Parts) }

// clustersAtOnce returns how many clusters of blocks of a wide kernel, for at most most input rows,
// run at the same time.
func (c *Compiler) clustersAtOnce(t *weights.Tiling, most int, of Cluster) int {
	blocks, _ := wideRoom(t, most)
	return max(1, c.Clusters[device.Occupancy{Blocks: blocks, Cluster: of.blocks()}])
}

// wideGrid returns the grid of a wide kernel for the given numbers of units of weight rows and parts
// of the input, each of at most most rows, in clusters of the given dimensions.
func (c *Compiler) wideGrid(t *weights.Tiling, units, parts, most int, of Cluster) driver.Dim3 {
	return driver.Dim3{X: of.Split * min(of.jobs(units, parts), c.clustersAtOnce(t, most, of)), Y: of.Parts}
}
