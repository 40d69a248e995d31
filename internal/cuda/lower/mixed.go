package lower

import (
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// mixes reports whether n and m, products of one input in unlike formats, have a kernel together
// for a single row of the input.
func mixes(n, m *plan.Node, lim *plan.Limits) bool {
	if lim.Activations != tensor.F16 {
		return false
	}
	a, b := weights.LaidAs(n.Weight.DType, lim), weights.LaidAs(m.Weight.DType, lim)
	return slices.Contains(weights.Mixed, [2]tensor.DType{a, b}) || slices.Contains(weights.Mixed, [2]tensor.DType{b, a})
}

// byFormat divides the products of a stage by the format of their weights.
func byFormat(s *fuse.Stage) []fuse.Stage {
	var parts []fuse.Stage
	for i, n := range s.Nodes {
		k := slices.IndexFunc(parts, func(p fuse.Stage) bool { return p.Node().Weight.DType == n.Weight.DType })
		if k < 0 {
			k = len(parts)
			part := *s
			part.Nodes, part.Maps = nil, nil
			parts = append(parts, part)
		}
		parts[k].Nodes, parts[k].Maps = append(parts[k].Nodes, n), append(parts[k].Maps, s.Maps[i])
	}
	return parts
}

// mixedArgs are the arguments of products in two formats; see kernels/linear.cuh.
type mixedArgs struct {
	first, second linearArgs
	blocks        int32
}

// mixed returns the launches of products in several formats: those of each format, and if they are
// two, one for both in their place for a single row of the input.
func (o linear) mixed(c *Compiler, parts []fuse.Stage) ([]Launch, error) {
	var all []Launch
	for i := range parts {
		ls, err := o.products(c, &parts[i], i > 0)
		if err != nil {
			return nil, err
		}
		moves := c.moved(&parts[i])
		for k := range ls {
			ls[k].Moves = moves
		}
		all = append(all, ls...)
	}
	if len(parts) != 2 {
		return all, nil
	}
	one, err := o.two(c, parts)
	if err != nil {
		return nil, err
	}
	return singly(one, all), nil
}

// two returns the launch of products in two formats with a single row of the input.
func (o linear) two(c *Compiler, parts []fuse.Stage) (Launch, error) {
	format := func(i int) tensor.DType { return c.Weights.Matrices[parts[i].Node().Weight].Format }
	if !slices.Contains(weights.Mixed, [2]tensor.DType{format(0), format(1)}) {
		parts = []fuse.Stage{parts[1], parts[0]}
	}
	var a mixedArgs
	var units, bytes [2]int
	for i, args := range []*linearArgs{&a.first, &a.second} {
		*args, _ = o.arguments(c, &parts[i])
		args.normalize(c, &parts[i])
		t := c.Weights.Matrices[parts[i].Node().Weight]
		units[i], bytes[i] = int(args.units), t.Bytes
	}
	share := segments / int(a.first.segments)
	first, second := shared(units, bytes, share*productBlocks*c.Multiprocessors)
	a.blocks = int32(first)
	t := c.Weights.Matrices[parts[0].Node().Weight]
	return c.launchShared(weights.MixedFamily(format(0), format(1)), "mixed_1", c.rows(parts[0].Node().Out), device.Arguments(&a), 32*int(a.first.segments), c.sharedOf(&plainVariants[0], &t), 0, func(*Shape) driver.Dim3 {
		return driver.Dim3{X: first + second}
	})
}

// shared divides at most the given number of blocks among two kinds of units, so that each block
// reads about as much, and as few rounds are needed as can be.
func shared(units, bytes [2]int, most int) (first, second int) {
	for rounds := 1; ; rounds++ {
		others := max(1, rounds*bytes[0]/bytes[1])
		first, second = (units[0]+rounds-1)/rounds, (units[1]+others-1)/others
		if first+second <= most || first == 1 && second == 1 {
			return first, second
		}
	}
}
