package cuda

import (
	"fmt"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A compiler makes launches of the stages of a layout. Addresses may be 0, where only
// the launches' names are wanted; then there is no device either.
type compiler struct {
	l        *layout
	weights  *weightPlan
	rotation *rotation // nil where nothing streams
	pools    []pool
	room     *room
	kernel   func(family, name string) (*driver.Function, error)
	hopper   bool // the kernels are those for capability 9.0
	early    bool // they may begin before those before them have ended

	weightsAt, scratchAt driver.DevicePtr
	expertImages         []driver.DevicePtr // by mixture, in the host's memory; nil where they stay on the device
	step                 stepAddresses

	multiprocessors int
	shared          map[*driver.Function]int // of the functions of every program
}

// compile makes the launches of every stage, those that come before all stages first.
func (c *compiler) compile() (before []launch, stages [][]launch, err error) {
	if before, err = c.angles(); err != nil {
		return nil, nil, err
	}
	for i := range c.l.stages {
		s := &c.l.stages[i]
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
		if norm := c.l.norm(s); norm != nil {
			single = plan.Where(append(norm.All(), s.All()...)...)
		}
		for k := range ls {
			l := &ls[k]
			l.stage, l.last, l.place = s, k == len(ls)-1, s.Node().Layer-plan.NoLayer
			l.where, l.single = where, single
			if l.moves == nil {
				l.moves = moves
			}
		}
		stages = append(stages, ls)
	}
	c.stream(stages)
	return before, stages, nil
}

// launch is one kernel with fixed arguments.
func (c *compiler) launch(family, name string, rows plan.Dim, a *driver.Args, threads int, grid func(sh *shape) driver.Dim3) (launch, error) {
	return c.launchShared(family, name, rows, a, threads, 0, 0, grid)
}

// launchShared is launch with shared memory beside what the kernel declares, and with
// clusters of so many blocks, 0 for none.
func (c *compiler) launchShared(family, name string, rows plan.Dim, a *driver.Args, threads, shared, cluster int, grid func(sh *shape) driver.Dim3) (launch, error) {
	f, err := c.kernel(family, name)
	if err != nil {
		return launch{}, err
	}
	if f != nil && shared > 0 {
		if err := f.SetMaxDynamicShared(max(shared, c.shared[f])); err != nil {
			return launch{}, err
		}
		c.shared[f] = max(shared, c.shared[f])
	}
	return launch{name: family + " " + name, rows: rows, begin: func(s *driver.Stream, sh *shape) error {
		config := driver.LaunchConfig{Grid: grid(sh), Block: driver.Dim3{X: threads}, Shared: shared, Programmatic: c.early}
		if cluster > 0 {
			config.Cluster = driver.Dim3{X: cluster}
		}
		return f.Launch(s, config, a)
	}}, nil
}

// one is a stage of one launch.
func (c *compiler) one(family, name string, rows plan.Dim, a *driver.Args, threads int, grid func(sh *shape) driver.Dim3) ([]launch, error) {
	l, err := c.launch(family, name, rows, a, threads, grid)
	if err != nil {
		return nil, err
	}
	return []launch{l}, nil
}

// oneOf is one of several launches of the same rows.
func oneOf(name string, by []launch, which func(sh *shape) int) launch {
	return launch{
		name: name, rows: by[0].rows,
		runs:  func(sh *shape) string { return by[which(sh)].name },
		begin: func(st *driver.Stream, sh *shape) error { return by[which(sh)].begin(st, sh) },
	}
}

// unless is l but for steps of a shape for which idle holds.
func (l launch) unless(idle func(sh *shape) bool) launch {
	name := l.name
	l.runs = func(sh *shape) string {
		if idle(sh) {
			return ""
		}
		return name
	}
	return l
}

func (c *compiler) rows(v plan.Value) plan.Dim { return c.l.p.Shapes[v][0] }

// count is where the number of a value's rows is.
func (c *compiler) count(v plan.Value) driver.DevicePtr {
	if c.rows(v) == plan.Rows {
		return c.step.counts + countRows
	}
	return c.step.counts + countTokens
}

func (c *compiler) forms(v plan.Value) forms { return c.l.forms(c.scratchAt, v) }

// weight is where a weight lies; 0 for none.
func (c *compiler) weight(t *tensor.Tensor) driver.DevicePtr {
	if t == nil {
		return 0
	}
	return c.weightsAt + driver.DevicePtr(c.weights.at[t])
}

// scratch is where the nodes of n's operation work, by the sizes of operation.scratch.
func (c *compiler) scratch(n *plan.Node) []driver.DevicePtr {
	var all []driver.DevicePtr
	for _, at := range c.room.scratch[n.Op] {
		all = append(all, c.scratchAt+driver.DevicePtr(at))
	}
	return all
}
