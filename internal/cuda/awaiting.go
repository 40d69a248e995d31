package cuda

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// The names of launches that are no kernels.
const (
	awaitName = "weights await"
	leaveName = "weights leave"
)

// stream puts among the launches of stages those that let the stream wait for images, and
// leave them.
func (c *compiler) stream(stages [][]launch) {
	if c.rotation == nil {
		return
	}
	for image := range c.weights.images {
		layer := c.weights.images[image].layer
		first, last := -1, -1
		for i := range stages {
			if c.l.stages[i].Node().Layer != layer {
				continue
			}
			if last = i; first < 0 {
				first = i
			}
		}
		live := func(name string, begin func(*driver.Stream, int) error) launch {
			return launch{
				name: name, place: layer - plan.NoLayer, rows: plan.Tokens, live: true,
				begin: func(s *driver.Stream, _ *shape) error { return begin(s, image) },
			}
		}
		await := live(awaitName, c.rotation.await)
		await.where, await.moves = fmt.Sprintf("layer %d (its weights come)", layer), func(*plan.Batch) int { return c.weights.images[image].bytes }
		stages[first] = slices.Insert(stages[first], 0, await)
		stages[last] = append(stages[last], live(leaveName, c.rotation.leave))
	}
}
