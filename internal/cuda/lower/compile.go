package lower

import (
	"fmt"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Compiler makes launches of the stages of a layout. Addresses may be 0, where only
// the launches' names are wanted; then there is no device either.
type Compiler struct {
	Layout   *Layout
	Weights  *weights.Plan
	Rotation *weights.Rotation // nil where nothing streams
	Pools    []Pool
	Room     *Room
	Kernel   func(family, name string) (*driver.Function, error)
	Hopper   bool // the kernels are those for capability 9.0
	Early    bool // they may begin before those before them have ended

	WeightsAt, ScratchAt driver.DevicePtr
	ExpertImages         []driver.DevicePtr // by mixture, in the host's memory; nil where they stay on the device
	Step                 stepAddresses

	Multiprocessors int
	SharedPerBlock  int                      // bytes that a block may have
	Shared          map[*driver.Function]int // of the functions of every program
}

// Compile makes the launches of every stage, those that come before all stages first.
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

// launch is one kernel with fixed arguments.
func (c *Compiler) launch(family, name string, rows plan.Dim, a *driver.Args, threads int, grid func(sh *Shape) driver.Dim3) (Launch, error) {
	return c.launchShared(family, name, rows, a, threads, 0, 0, grid)
}

// launchShared is launch with shared memory beside what the kernel declares, and with
// clusters of so many blocks, 0 for none.
func (c *Compiler) launchShared(family, name string, rows plan.Dim, a *driver.Args, threads, shared, cluster int, grid func(sh *Shape) driver.Dim3) (Launch, error) {
	return c.launchClusters(family, name, rows, a, threads, shared, func(sh *Shape) (driver.Dim3, int) { return grid(sh), cluster })
}

// launchClusters is launchShared where the size of clusters depends on the step's shape, too.
func (c *Compiler) launchClusters(family, name string, rows plan.Dim, a *driver.Args, threads, shared int, grid func(sh *Shape) (blocks driver.Dim3, cluster int)) (Launch, error) {
	f, err := c.sharedKernel(family, name, shared)
	if err != nil {
		return Launch{}, err
	}
	return Launch{Name: family + " " + name, rows: rows, begin: func(s *driver.Stream, sh *Shape) error {
		blocks, cluster := grid(sh)
		config := driver.LaunchConfig{Grid: blocks, Block: driver.Dim3{X: threads}, Shared: shared, Programmatic: c.Early}
		if cluster > 0 {
			config.Cluster = driver.Dim3{X: cluster}
		}
		return f.Launch(s, config, a)
	}}, nil
}

// sharedKernel is a kernel that launches may give so much shared memory.
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

// one is a stage of one launch.
func (c *Compiler) one(family, name string, rows plan.Dim, a *driver.Args, threads int, grid func(sh *Shape) driver.Dim3) ([]Launch, error) {
	l, err := c.launch(family, name, rows, a, threads, grid)
	if err != nil {
		return nil, err
	}
	return []Launch{l}, nil
}

// oneOf is one of several launches of the same rows.
func oneOf(name string, by []Launch, which func(sh *Shape) int) Launch {
	return Launch{
		Name: name, rows: by[0].rows,
		runs:  func(sh *Shape) string { return by[which(sh)].Name },
		begin: func(st *driver.Stream, sh *Shape) error { return by[which(sh)].begin(st, sh) },
	}
}

// unless is l but for steps of a shape for which idle holds.
func (l Launch) unless(idle func(sh *Shape) bool) Launch {
	name := l.Name
	l.runs = func(sh *Shape) string {
		if idle(sh) {
			return ""
		}
		return name
	}
	return l
}

func (c *Compiler) rows(v plan.Value) plan.Dim { return c.Layout.p.Shapes[v][0] }

// count is where the number of a value's rows is.
func (c *Compiler) count(v plan.Value) driver.DevicePtr {
	if c.rows(v) == plan.Rows {
		return c.Step.counts + countRows
	}
	return c.Step.counts + countTokens
}

func (c *Compiler) forms(v plan.Value) device.Forms { return c.Layout.Forms(c.ScratchAt, v) }

// weight is where a weight lies; 0 for none.
func (c *Compiler) weight(t *tensor.Tensor) driver.DevicePtr {
	if t == nil {
		return 0
	}
	return c.WeightsAt + driver.DevicePtr(c.Weights.At[t])
}

// powers is where the powers of two of a matrix's rows are; 0 for none.
func (c *Compiler) powers(t *tensor.Tensor) driver.DevicePtr {
	if m := c.Weights.Matrices[t]; m.Scaled() {
		return c.weight(t) + driver.DevicePtr(m.Tiles())
	}
	return 0
}

// scratch is where the nodes of n's operation work, by the sizes of operation.scratch.
func (c *Compiler) scratch(n *plan.Node) []driver.DevicePtr {
	var all []driver.DevicePtr
	for _, at := range c.Room.scratch[n.Op] {
		all = append(all, c.ScratchAt+driver.DevicePtr(at))
	}
	return all
}
