package lower

import "github.com/realizar/realizar/internal/cuda/driver"

// The most that a multiprocessor of capability 9.0 holds at the same time.
const (
	residentBlocks    = 32
	residentThreads   = 2048
	residentRegisters = 64 << 10
)

// carveouts are the sizes in bytes from 32 KiB on that shared memory can have there. The L1 cache has the
// rest of 256 KiB.
var carveouts = []int{32 << 10, 64 << 10, 100 << 10, 132 << 10, 164 << 10, 196 << 10, 228 << 10}

// blockReserve is the shared memory in bytes that a block takes besides its own.
const blockReserve = 1 << 10

// largeBlock is the shared memory in bytes of the smallest block, with its reserve, whose carveout the
// driver chooses. Gates of eight rows are slower with any that is asked for, see docs/log.md.
const largeBlock = 90 << 10

// carveout returns the percentage of the largest carveout that a launch asks for, or 0 if the driver
// chooses. It is the least that holds the blocks which run on a multiprocessor at the same time: the
// smaller it is, the larger is the L1 cache, from which the blocks of a product read the same rows.
func carveout(config *driver.LaunchConfig, needs driver.FunctionAttributes, multiprocessors int) int {
	each := config.Shared + needs.SharedBytes + blockReserve
	if each >= largeBlock {
		return 0
	}
	blocks, threads := config.Grid.Size(), config.Block.Size()
	registers := threads * max(8, (needs.Registers+7)/8*8)
	resident := max(1, min(residentBlocks, residentThreads/threads, residentRegisters/registers, (blocks+multiprocessors-1)/multiprocessors))
	largest := carveouts[len(carveouts)-1]
	for _, bytes := range carveouts {
		if resident*each <= bytes {
			return (100*bytes + largest - 1) / largest
		}
	}
	return 100
}
