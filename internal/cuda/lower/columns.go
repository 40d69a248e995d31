package lower

import (
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// elementGrid returns the grid of an elementwise kernel whose threads have a column each, of rows of
// stride elements.
func elementGrid(rows plan.Dim, stride int32) func(sh *Shape) driver.Dim3 {
	return columnGrid(rows, stride, 1)
}

// columnGrid returns the grid of an elementwise kernel whose threads have so many columns.
func columnGrid(rows plan.Dim, stride int32, columns int) func(sh *Shape) driver.Dim3 {
	return func(sh *Shape) driver.Dim3 {
		each := 256 * columns // of a block
		return driver.Dim3{X: (int(stride) + each - 1) / each, Y: min(sh.Size(rows), 65535)}
	}
}

// byColumns returns the launch of an elementwise kernel on rows of stride elements; see
// kernels/each.cuh. If there are blocks for all multiprocessors, its threads have four columns,
// otherwise one. change, if not nil, changes the grid.
func (c *Compiler) byColumns(family, name string, rows plan.Dim, args *driver.Args, stride int32, change func(g *driver.Dim3)) (Launch, error) {
	launch := func(name string, columns int) (Launch, error) {
		grid := columnGrid(rows, stride, columns)
		return c.launch(family, name, rows, args, 256, func(sh *Shape) driver.Dim3 {
			g := grid(sh)
			if change != nil {
				change(&g)
			}
			return g
		})
	}
	one, err := launch(name, 1)
	if err != nil {
		return Launch{}, err
	}
	four, err := launch(name+"_4", 4)
	if err != nil {
		return Launch{}, err
	}
	fours := columnGrid(rows, stride, 4)
	return oneOf(one.Name, []Launch{one, four}, func(sh *Shape) int {
		if g := fours(sh); g.X*g.Y >= c.Multiprocessors {
			return 1
		}
		return 0
	}), nil
}
