package lower

import (
	"fmt"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Compiler builds the launches for the stages of a layout. To get only the launches' names,
// addresses may be 0 and no device is needed.
type Compiler struct {
	Layout   *Layout
	Weights  *weights.Plan
	Rotation *weights.Rotation // nil if nothing is streamed
	Pools    []Pool
	Prefixes *Prefixes
	Room     *Room
	Kernel   func(family, name string) (*driver.Function, error)
	Table    Table  // measured choices of kernels; may be nil
	Hopper   bool   // the kernels are those for capability 9.0
	Early    bool   // kernels may begin before the previous ones have ended
	Carves   bool   // launches ask for a share of shared memory
	Peers    *Peers // nil if the program is no part of one that is divided

	WeightsAt, ScratchAt driver.DevicePtr
	ExpertImages         []driver.DevicePtr // by mixture, in host memory; nil if experts stay on the device
	Step                 stepAddresses

	Multiprocessors int
	Clusters        map[device.Occupancy]int // how many run at the same time
	SharedPerBlock  int                      // maximum bytes of shared memory of a block
	Shared          map[*driver.Function]int // for the functions of all programs
}

// Compile returns the launches of every stage, and the launches before all stages.
func (c *Compiler) Compile() (before []Launch, stages [][]Launch, err error) {
	if before, err = c.angles(); err != nil {
		return nil, nil, err
	}
	for i := range c.Layout.Stages {
		s := &c.Layout.Stages[i]
		ls, err := operationOf(s).launches(c, s)
		if err == nil && !operationOf(s).writes(s) {
			for _, v := range s.IO().Out {
				more, convertErr := c.convert(v)
				ls, err = append(ls, more...), convertErr
			}
		}
		if err != nil {
			return nil, nil, fmt.Errorf("cuda: %s: %w", s.Node().Where(), err)
		}
		where, single, moves := plan.Where(s.All()...), "", c.moved(s)
		if norm := c.Layout.norm(s); norm != nil {
			single = plan.Where(append(norm.All(), s.All()...)...)
		}
		for k := range ls {
			l := &ls[k]
			l.Stage, l.Last, l.Place = s, k == len(ls)-1, s.Node().Layer-plan.NoLayer
			l.where, l.single = where, single
			if l.Moves == nil {
				l.Moves = moves
			}
		}
		stages = append(stages, ls)
	}
	c.stream(stages)
	return before, stages, nil
}

// launch returns a launch of one kernel with fixed arguments.
func (c *Compiler) launch(family, name string, rows plan.Dim, a *driver.Args, threads int, grid func(sh *Shape) driver.Dim3) (Launch, error) {
	return c.launchShared(family, name, rows, a, threads, 0, 0, grid)
}

// launchShared is launch with additional shared memory, in bytes, and with clusters of the given
// number of blocks, or none if it is 0.
func (c *Compiler) launchShared(family, name string, rows plan.Dim, a *driver.Args, threads, shared, cluster int, grid func(sh *Shape) driver.Dim3) (Launch, error) {
	return c.launchClusters(family, name, rows, a, threads, shared, func(sh *Shape) (driver.Dim3, driver.Dim3) { return grid(sh), driver.Dim3{X: cluster} })
}

// launchClusters is launchShared for cluster sizes that also depend on the step's shape.
func (c *Compiler) launchClusters(family, name string, rows plan.Dim, a *driver.Args, threads, shared int, grid func(sh *Shape) (blocks, cluster driver.Dim3)) (Launch, error) {
	f, err := c.sharedKernel(family, name, shared)
	if err != nil {
		return Launch{}, err
	}
	return Launch{Name: family + " " + name, rows: rows, begin: func(s *driver.Stream, sh *Shape) error {
		blocks, cluster := grid(sh)
		config := driver.LaunchConfig{Grid: blocks, Block: driver.Dim3{X: threads}, Shared: shared, Cluster: cluster}
		return c.queue(f, s, config, a)
	}}, nil
}

// queue queues a launch of f, which may begin before the one before it has ended, and asks for its
// share of shared memory.
func (c *Compiler) queue(f *driver.Function, s *driver.Stream, config driver.LaunchConfig, a *driver.Args) error {
	config.Programmatic = c.Early
	if c.Carves {
		needs, err := f.Attributes()
		if err != nil {
			return err
		}
		config.Carveout = carveout(&config, needs, c.Multiprocessors)
	}
	return f.Launch(s, config, a)
}

// sharedKernel returns a kernel and allows launches with the given shared memory, in bytes.
func (c *Compiler) sharedKernel(family, name string, shared int) (*driver.Function, error) {
	f, err := c.Kernel(family, name)
	if err != nil {
		return nil, err
	}
	if f != nil && shared > 0 {
		if err := f.SetMaxDynamicShared(max(shared, c.Shared[f])); err != nil {
			return nil, err
		}
		c.Shared[f] = max(shared, c.Shared[f])
	}
	return f, nil
}

// one returns a stage of one launch.
func (c *Compiler) one(family, name string, rows plan.Dim, a *driver.Args, threads int, grid func(sh *Shape) driver.Dim3) ([]Launch, error) {
	l, err := c.launch(family, name, rows, a, threads, grid)
	if err != nil {
		return nil, err
	}
	return []Launch{l}, nil
}

// oneOf returns a launch that runs one of several launches with the same rows, chosen by the shape.
func oneOf(name string, by []Launch, which func(sh *Shape) int) Launch {
	return Launch{
		Name: name, rows: by[0].rows,
		runs:  func(sh *Shape) string { return by[which(sh)].Name },
		begin: func(st *driver.Stream, sh *Shape) error { return by[which(sh)].begin(st, sh) },
	}
}

// unless returns l, skipped for shapes for which idle is true.
func (l Launch) unless(idle func(sh *Shape) bool) Launch {
	runs, name := l.runs, l.Name
	l.runs = func(sh *Shape) string {
		switch {
		case idle(sh):
			return ""
		case runs != nil:
			return runs(sh)
		}
		return name
	}
	return l
}

// singly returns launches of which one runs in steps with a single row, and all others in the rest.
func singly(one Launch, others []Launch) []Launch {
	single := func(sh *Shape) bool { return sh.Size(one.rows) == 1 }
	all := []Launch{one.unless(func(sh *Shape) bool { return !single(sh) })}
	for _, l := range others {
		all = append(all, l.unless(single))
	}
	return all
}

func (c *Compiler) rows(v plan.Value) plan.Dim { return c.Layout.p.Shapes[v][0] }

// count returns the device address of a value's number of rows.
func (c *Compiler) count(v plan.Value) driver.DevicePtr {
	if c.rows(v) == plan.Rows {
		return c.Step.counts + countRows
	}
	return c.Step.counts + countTokens
}

func (c *Compiler) forms(v plan.Value) device.Forms { return c.Layout.Forms(c.ScratchAt, v) }

// weight returns the address of a weight, or 0 if t is nil.
func (c *Compiler) weight(t *tensor.Tensor) driver.DevicePtr {
	if t == nil {
		return 0
	}
	return c.WeightsAt + driver.DevicePtr(c.Weights.At[t])
}

// powers returns the address of the powers of two of a matrix's rows, or 0 if there are none.
func (c *Compiler) powers(t *tensor.Tensor) driver.DevicePtr {
	if m := c.Weights.Matrices[t]; m.Scaled() {
		return c.weight(t) + driver.DevicePtr(m.Tiles())
	}
	return 0
}

// scratch returns the addresses of n's scratch memory, one for each size that operation.scratch
// returns.
func (c *Compiler) scratch(n *plan.Node) []driver.DevicePtr {
	var all []driver.DevicePtr
	for _, at := range c.Room.scratch[n.Op] {
		all = append(all, c.ScratchAt+driver.DevicePtr(at))
	}
	return all
}
