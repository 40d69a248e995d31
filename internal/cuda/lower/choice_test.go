package lower

import (
	"testing"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// h200 are the clusters that an H200 runs at the same time: fewer than its multiprocessors have
// room for.
var h200 = map[device.Occupancy]int{
	{Blocks: 1, Cluster: 1}: 132, {Blocks: 1, Cluster: 2}: 66, {Blocks: 1, Cluster: 4}: 30, {Blocks: 1, Cluster: 8}: 15,
	{Blocks: 2, Cluster: 1}: 264, {Blocks: 2, Cluster: 2}: 132, {Blocks: 2, Cluster: 4}: 62, {Blocks: 2, Cluster: 8}: 30,
}

// The estimates for shapes of Llama 3.1 8B and Qwen3 8B on an H200 are the choices that were
// measured to be the fastest there, or take at most 5% longer.
func TestEstimates(t *testing.T) {
	lim := &plan.Limits{Activations: tensor.F16}
	c := &Compiler{Layout: &Layout{lim: lim}, Hopper: true, Multiprocessors: 132, Clusters: h200}
	for _, test := range []struct {
		of   Product
		rows int
		want string
	}{
		{Product{tensor.Q4_K, false, 4096, 4096}, 64, "wide_64 cluster 2x1"},
		{Product{tensor.Q4_K, false, 4096, 14336}, 128, "wide_64 cluster 2x1"},
		{Product{tensor.Q4_K, false, 4096, 4096}, 256, "wide_128 cluster 2x1"},
		{Product{tensor.Q4_K, false, 6144, 4096}, 256, "wide_128 cluster 1x1"},
		{Product{tensor.Q4_K, true, 14336, 4096}, 64, "wide_gated_64 cluster 1x1"},
		{Product{tensor.Q4_K, true, 14336, 4096}, 256, "wide_gated_128 cluster 1x1"},
		{Product{tensor.Q4_K, true, 14336, 4096}, 2048, "wide_gated_128 cluster 1x1"},
		{Product{tensor.BF16, false, 4096, 12288}, 64, "wide_64 cluster 8x1"},
		{Product{tensor.BF16, true, 12288, 4096}, 256, "wide_gated_128 cluster 1x2"},
		{Product{tensor.BF16, false, 4096, 4096}, 2048, "wide_128 cluster 1x2"},
	} {
		if got := c.Estimate(Case{test.of, test.rows}).String(); got != test.want {
			t.Errorf("%v with %d rows: %s, want %s", test.of, test.rows, got, test.want)
		}
	}
}

// A launch has no more clusters than run at the same time, of any size and kernel.
func TestClustersAtOnce(t *testing.T) {
	c := &Compiler{Multiprocessors: 132, Clusters: h200}
	for _, d := range []tensor.DType{tensor.Q4_K, tensor.BF16} {
		tiling := tilingOf(Product{Format: d, Rows: 28672, Cols: 4096}, &plan.Limits{Activations: tensor.F16})
		for _, rows := range []int{16, 32, 64, 128} {
			blocks, _ := wideRoom(tiling, rows)
			for _, of := range wideClusters(sharesCopies(d)) {
				grid := c.wideGrid(tiling, 224, 16, rows, of)
				if most := h200[device.Occupancy{Blocks: blocks, Cluster: of.Split * of.Parts}]; grid.X != most*of.Split || grid.Y != of.Parts {
					t.Errorf("%v, kernels for %d rows, cluster %v: grid %v, want %d clusters", d, rows, of, grid, most)
				}
			}
		}
	}
}
