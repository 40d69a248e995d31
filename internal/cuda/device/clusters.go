package device

import "github.com/realizar/realizar/internal/cuda/driver"

// MaxCluster is the maximum number of blocks of a cluster that every device with clusters runs.
const MaxCluster = 8

// An Occupancy is the number of blocks that fill a multiprocessor, 1 or 2, and the number of blocks
// of a cluster, a power of two up to [MaxCluster].
type Occupancy struct{ Blocks, Cluster int }

// clusters returns how many clusters run at the same time. They are fewer than the multiprocessors
// have room for, because the blocks of a cluster must be near each other.
func (g *GPU) clusters() (map[Occupancy]int, error) {
	const threads = 256
	all := map[Occupancy]int{}
	err := g.Main.Do(func() error {
		f, err := g.Function("bandwidth", "readAll")
		if err != nil {
			return err
		}
		if err := f.SetMaxDynamicShared(g.Info.SharedPerBlock); err != nil {
			return err
		}
		for blocks := 1; blocks <= 2; blocks++ {
			shared := g.Info.SharedPerBlock/blocks - 2<<10
			for n := 1; n <= MaxCluster; n *= 2 {
				config := driver.LaunchConfig{Grid: driver.Dim3{X: blocks * n * g.Info.Multiprocessors}, Block: driver.Dim3{X: threads}, Shared: shared, Cluster: driver.Dim3{X: n}}
				if all[Occupancy{blocks, n}], err = f.ActiveClusters(config); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return all, err
}
