package backends

import (
	"cmp"
	"context"
	"runtime/debug"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
)

// Processor is the kind of device that every machine has.
var Processor = Kind{Name: "cpu", Host: true, Parallel: 16, Open: openProcessor}

func openProcessor(o Options) (Backend, error) {
	b, err := cpu.New(o.Threads).WithTier(cmp.Or(o.Kernels, cpu.Tiers()[0]))
	if err != nil {
		return nil, err
	}
	return processor{b, o.Threads}, nil
}

// A processor is the host's device.
type processor struct {
	*cpu.Backend
	threads int // as in [Options]
}

func (processor) Description() string                         { return "" }
func (processor) Kernels(*plan.Program, plan.Limits) []string { return nil }
func (processor) Link(context.Context) (float64, error)       { return 0, nil }
func (processor) Close() error                                { return nil }
func (p processor) Streaming(program *plan.Program, l plan.Limits) plan.Streaming {
	return plan.Streaming{Resident: p.Weights(program, l)}
}

// HostMemory returns the free and total host memory.
func HostMemory() plan.MemoryInfo { return cpu.New(1).Memory() }

// bandwidthBuffer is larger than the caches of almost any machine.
const bandwidthBuffer = 512 << 20

// Bandwidth reads a buffer of at most a quarter of the free memory.
func (p processor) Bandwidth(context.Context) (float64, error) {
	size := int64(bandwidthBuffer)
	if free := p.Memory().Free; free > 0 {
		size = min(size, free/4)
	}
	defer debug.FreeOSMemory()
	return cpu.ReadBandwidth(p.threads, size), nil
}
