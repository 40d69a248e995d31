package driver

import (
	"fmt"
	"unsafe"
)

// A Dim3 is a count in three dimensions. A Y or Z of 0 means 1.
type Dim3 struct{ X, Y, Z int }

func (d Dim3) words() (x, y, z uint32) {
	return uint32(d.X), uint32(max(d.Y, 1)), uint32(max(d.Z, 1))
}

// Size returns the product of the counts.
func (d Dim3) Size() int { return d.X * max(d.Y, 1) * max(d.Z, 1) }

func (d Dim3) String() string {
	x, y, z := d.words()
	return fmt.Sprintf("%dx%dx%d", int32(x), y, z)
}

// A LaunchConfig is the shape of a launch.
type LaunchConfig struct {
	Grid   Dim3 // blocks
	Block  Dim3 // threads of a block
	Shared int  // bytes of shared memory in addition to the kernel's declared shared memory

	// Carveout is the size that the kernel prefers for a multiprocessor's shared memory, in percent of
	// the largest. The L1 cache has the rest of the same memory. 0 leaves the choice to the driver.
	// Other values need a driver for CUDA 13.0 or later.
	Carveout int

	// Cluster is the number of blocks in a cluster, on capability 9.0 and later. An X of 0 means no
	// clusters.
	Cluster Dim3
	// Programmatic lets the kernel begin before the stream's previous one has ended, on capability
	// 9.0 and later. Before its griddepcontrol.wait it must not read data that the previous kernel
	// writes, nor write data that it reads. The first launch after a [Stream.Wait] is an ordinary
	// launch, because the kernel may read early what the stream waits for.
	Programmatic bool
}

// launchSpace is the memory that cuLaunchKernelEx reads: a CUlaunchConfig and its attributes.
type launchSpace struct {
	config struct {
		grid, block [3]uint32
		shared      uint32
		stream      uintptr
		attributes  uintptr
		count       uint32
	}
	attributes [3]launchAttribute
}

// launchAttribute is a CUlaunchAttribute.
type launchAttribute struct {
	id    uint64 // 32 bits and padding
	value [8]uint64
}

const (
	launchClusterDimension          = 4
	launchProgrammaticSerialization = 6
	launchCarveout                  = 14
)

// launchConfig returns the address of a CUlaunchConfig, which the next call of launchConfig changes.
func (c *Context) launchConfig(config *LaunchConfig, programmatic bool, stream uintptr) uintptr {
	l := &c.launch
	n := 0
	if config.Cluster.X != 0 {
		x, y, z := config.Cluster.words()
		l.attributes[n] = launchAttribute{id: launchClusterDimension, value: [8]uint64{uint64(x) | uint64(y)<<32, uint64(z)}}
		n++
	}
	if programmatic {
		l.attributes[n] = launchAttribute{id: launchProgrammaticSerialization, value: [8]uint64{1}}
		n++
	}
	if config.Carveout != 0 {
		l.attributes[n] = launchAttribute{id: launchCarveout, value: [8]uint64{uint64(uint32(config.Carveout))}}
		n++
	}
	gx, gy, gz := config.Grid.words()
	bx, by, bz := config.Block.words()
	l.config.grid, l.config.block = [3]uint32{gx, gy, gz}, [3]uint32{bx, by, bz}
	l.config.shared, l.config.stream = uint32(config.Shared), stream
	l.config.attributes, l.config.count = at(&l.attributes), uint32(n)
	return at(&l.config)
}

// ActiveClusters returns how many clusters of a launch run at the same time on an idle device.
func (f *Function) ActiveClusters(config LaunchConfig) (int, error) {
	if err := f.c.do(fnActiveClusters, at(&f.c.out.i), f.handle, f.c.launchConfig(&config, false, 0)); err != nil {
		return 0, err
	}
	return int(f.c.out.i), nil
}

// Launch queues a run of the kernel. It copies a before it returns; a may be nil if the kernel has
// no parameters. The parameters must match the kernel's declaration, which nothing checks. A later
// call reports a fault of the kernel.
func (f *Function) Launch(s *Stream, config LaunchConfig, a *Args) error {
	c := f.c
	if s.handle == 0 || s.c != c {
		return c.invalid(fnLaunchKernel, "kernel %s: the stream is destroyed or another context's", f.name)
	}
	if c.lost != nil {
		return c.lost
	}
	gx, gy, gz := config.Grid.words()
	bx, by, bz := config.Block.words()
	var extra uintptr
	if a != nil && len(a.buf) > 0 {
		base := c.hold(unsafe.Pointer(a))
		a.size = uintptr(len(a.buf))
		a.extra = [5]uintptr{paramBufferPointer, uintptr(unsafe.Pointer(&a.buf[0])), paramBufferSize, base + unsafe.Offsetof(a.size), paramEnd}
		extra = base + unsafe.Offsetof(a.extra)
	}

	programmatic := config.Programmatic && !s.waits
	s.waits = false
	fn := fnLaunchKernel
	var code Code
	if config.Cluster.X == 0 && config.Carveout == 0 && !programmatic {
		code = c.call(fn, f.handle, uintptr(gx), uintptr(gy), uintptr(gz), uintptr(bx), uintptr(by), uintptr(bz), uintptr(config.Shared), s.handle, 0, extra)
	} else {
		fn = fnLaunchKernelEx
		code = c.call(fn, c.launchConfig(&config, programmatic, s.handle), f.handle, 0, extra)
	}
	if code != Success {
		return c.failed(fn, code, fmt.Sprintf("kernel %s, grid %v, block %v, %d bytes of shared memory", f.name, config.Grid, config.Block, config.Shared))
	}
	return nil
}
