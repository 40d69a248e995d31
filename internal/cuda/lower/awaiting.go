package lower

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// The names of launches that are not kernels.
const (
	AwaitName = "weights await"
	leaveName = "weights leave"
)

// stream inserts launches that make the stream wait for weight images, and launches that release
// them. The weights of a program's head are resident.
func (c *Compiler) stream(stages [][]Launch) {
	if c.Rotation == nil {
		return
	}
	for image := range c.Weights.Images {
		layer := c.Weights.Images[image].Layer
		first, last := -1, -1
		for i := range stages {
			if i >= c.Layout.head || c.Layout.Stages[i].Node().Layer != layer {
				continue
			}
			if last = i; first < 0 {
				first = i
			}
		}
		live := func(name string, begin func(*driver.Stream, int) error) Launch {
			return Launch{
				Name: name, Place: layer - plan.NoLayer, rows: plan.Tokens, Live: true,
				begin: func(s *driver.Stream, _ *Shape) error { return begin(s, image) },
			}
		}
		await := live(AwaitName, c.Rotation.Await)
		await.where, await.Moves = fmt.Sprintf("layer %d (its weights come)", layer), func(*plan.Batch) int { return c.Weights.Images[image].Bytes }
		stages[first] = slices.Insert(stages[first], 0, await)
		stages[last] = append(stages[last], live(leaveName, c.Rotation.Leave))
	}
}
