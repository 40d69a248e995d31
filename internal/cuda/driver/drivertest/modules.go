package drivertest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// module knows its kernels by name, from .entry in its text, and their parameters.
type module struct{ kernels map[string]uintptr }

func (*module) kind() string { return "module" }

// function is a kernel. It is destroyed with its module.
type function struct {
	name     string
	text     string // of the module
	declared int    // bytes of parameters
	shared   int    // maximum shared memory of a launch, in bytes
}

var (
	entries    = regexp.MustCompile(`\.entry\s+([\w$]+)(?:\s*\(([^)]*)\))?`)
	parameters = regexp.MustCompile(`\.param\s+(?:\.align\s+(\d+)\s+)?\.[a-z]+(\d+)\s+[\w$]+(?:\[(\d+)\])?`)
)

// declared returns the size in bytes of the parameters that a kernel's text declares.
func declared(text string) int {
	end := 0
	for _, m := range parameters.FindAllStringSubmatch(text, -1) {
		var number [4]int // 0 if absent
		for i, digits := range m {
			number[i], _ = strconv.Atoi(digits)
		}
		align, size, elems := number[1], number[2]/8, max(number[3], 1)
		align = max(align, size)
		end = (end+align-1)/align*align + size*elems
	}
	return end
}

// compilerLog returns the buffer that the options of cuModuleLoadDataEx point to, in the only order
// that package driver uses.
type compilerLog struct {
	info       *byte
	infoSize   uintptr
	errors     *byte
	errorsSize uintptr
}

func (f *Fake) load(out *uintptr, image *byte, options []uint32, log *compilerLog) driver.Code {
	if code := f.notCapturing(); code != driver.Success {
		return code
	}
	if !slices.Equal(options, []uint32{3, 4, 5, 6}) {
		return driver.InvalidValue
	}
	text := cText(image)
	if !strings.Contains(text, ".version") {
		putText(log.errors, int(log.errorsSize), "ptxas fatal   : Missing .version directive at start of file\n")
		return driver.InvalidPTX
	}
	if strings.Contains(text, ".maxnreg") {
		putText(log.info, int(log.infoSize), "ptxas info    : register limit given\n")
	}
	all := entries.FindAllStringSubmatch(text, -1)
	for _, match := range all {
		if match[1] == f.options.Refused {
			putText(log.errors, int(log.errorsSize), "ptxas error   : the kernel "+match[1]+" is refused\n")
			return driver.InvalidPTX
		}
	}
	m := &module{map[string]uintptr{}}
	for _, match := range all {
		m.kernels[match[1]] = f.add(&function{name: match[1], text: text, declared: declared(match[2]), shared: 48 << 10})
	}
	*out = f.add(m)
	return driver.Success
}

// cText returns the text from p up to a NUL.
func cText(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// The structures of cuLaunchKernelEx and of the extra argument of cuLaunchKernel.
type (
	launchConfig struct {
		grid, block [3]uint32
		shared      uint32
		stream      uintptr
		attributes  *[4]launchAttribute
		count       uint32
	}
	launchAttribute struct {
		id, _ uint32
		value [16]uint32
	}
	launchExtra struct {
		pointer uintptr
		buffer  *byte
		size    uintptr
		bytes   *uintptr
		end     uintptr
	}
)

func dim3(d [3]uint32) driver.Dim3 { return driver.Dim3{X: int(d[0]), Y: int(d[1]), Z: int(d[2])} }

func (f *Fake) launch(kernel uintptr, config launchConfig, extra *launchExtra) driver.Code {
	k, ok := object[*function](f, kernel)
	if !ok {
		return driver.InvalidHandle
	}
	l := Launch{Kernel: k.name, Grid: dim3(config.grid), Block: dim3(config.block), Shared: int(config.shared)}
	for _, n := range config.grid {
		if n == 0 {
			return driver.InvalidValue
		}
	}
	if threads := l.Block.X * l.Block.Y * l.Block.Z; threads < 1 || threads > 1024 || l.Shared > k.shared {
		return driver.InvalidValue
	}
	for _, a := range config.attributes[:config.count] {
		switch a.id {
		case 4:
			l.Cluster = dim3([3]uint32(a.value[:3]))
		case 6:
			l.Programmatic = a.value[0] == 1
		case 14:
			if l.Carveout = int(a.value[0]); l.Carveout > 100 {
				return driver.InvalidValue
			}
		default:
			return driver.InvalidValue
		}
	}
	if extra != nil {
		if extra.pointer != 1 || extra.size != 2 || extra.end != 0 {
			return driver.InvalidValue
		}
		l.Params = slices.Clone(unsafe.Slice(extra.buffer, *extra.bytes))
	}
	if len(l.Params) != k.declared {
		f.misfits = append(f.misfits, fmt.Sprintf("%s: %d bytes, declared are %d", k.name, len(l.Params), k.declared))
	}
	return f.enqueue(config.stream, func(graph bool) driver.Code {
		l := l
		l.Graph, l.Device = graph, f.current[thread()]-1
		f.launches = append(f.launches, l)
		f.work = append(f.work, Work{Stream: f.working, Launch: &l})
		if f.options.Effect != nil {
			f.options.Effect(&l, f.memory.at)
		}
		if f.options.Run != nil {
			f.mu.Unlock()
			defer f.mu.Lock()
			f.options.Run(&l, k.text)
		}
		return driver.Success
	})
}

func (s *slot) addModules() {
	s.add("cuModuleLoadDataEx", func(out *uintptr, image *byte, n uint32, options *uint32, log *compilerLog) uintptr {
		return s.callInContext("cuModuleLoadDataEx", func(f *Fake, _ int) driver.Code {
			return f.load(out, image, unsafe.Slice(options, n), log)
		})
	})
	s.add("cuModuleUnload", func(h uintptr) uintptr {
		return s.callInContext("cuModuleUnload", func(f *Fake, _ int) driver.Code {
			if m, ok := object[*module](f, h); ok {
				for _, k := range m.kernels {
					delete(f.objects, k)
				}
			}
			return remove[*module](f, h)
		})
	})
	s.add("cuModuleGetFunction", func(out *uintptr, h uintptr, name *byte) uintptr {
		return s.callInContext("cuModuleGetFunction", func(f *Fake, _ int) driver.Code {
			m, ok := object[*module](f, h)
			if !ok {
				return driver.InvalidHandle
			}
			kernel, ok := m.kernels[cText(name)]
			if !ok {
				return driver.NotFound
			}
			*out = kernel
			return driver.Success
		})
	})

	ofFunction := func(name string, h uintptr, body func(k *function) driver.Code) uintptr {
		return s.callInContext(name, func(f *Fake, _ int) driver.Code {
			k, ok := object[*function](f, h)
			if !ok {
				return driver.InvalidHandle
			}
			return body(k)
		})
	}
	s.add("cuFuncGetAttribute", func(out *int32, attribute uint32, h uintptr) uintptr {
		return ofFunction("cuFuncGetAttribute", h, func(*function) driver.Code {
			*out = map[uint32]int32{0: 1024, 1: 256, 3: 16, 4: 40}[attribute]
			return driver.Success
		})
	})
	s.add("cuFuncSetAttribute", func(h uintptr, attribute uint32, value int32) uintptr {
		return ofFunction("cuFuncSetAttribute", h, func(k *function) driver.Code {
			const maxDynamicShared = 8
			if attribute != maxDynamicShared || value < 0 || value > sharedLimit {
				return driver.InvalidValue
			}
			k.shared = int(value)
			return driver.Success
		})
	})
	s.add("cuOccupancyMaxActiveBlocksPerMultiprocessor", func(out *int32, h uintptr, threads int32, _ uintptr) uintptr {
		return ofFunction("cuOccupancyMaxActiveBlocksPerMultiprocessor", h, func(*function) driver.Code {
			if threads < 1 {
				return driver.InvalidValue
			}
			*out = 2048 / threads
			return driver.Success
		})
	})
	s.add("cuOccupancyMaxActiveClusters", func(out *int32, h uintptr, config *launchConfig) uintptr {
		return ofFunction("cuOccupancyMaxActiveClusters", h, func(*function) driver.Code {
			size, blocks := config.attributes[0].value, int32(1)
			if config.count != 1 || config.attributes[0].id != 4 || size[0] == 0 {
				return driver.InvalidValue
			}
			if config.shared <= sharedLimit/2 {
				blocks = 2
			}
			*out = blocks * attributes[16] / int32(size[0]*size[1]*size[2])
			return driver.Success
		})
	})
	s.add("cuLaunchKernel", func(k uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream, _ uintptr, extra *launchExtra) uintptr {
		return s.callInContext("cuLaunchKernel", func(f *Fake, _ int) driver.Code {
			return f.launch(k, launchConfig{grid: [3]uint32{gx, gy, gz}, block: [3]uint32{bx, by, bz}, shared: shared, stream: stream, attributes: &[4]launchAttribute{}}, extra)
		})
	})
	s.add("cuLaunchKernelEx", func(config *launchConfig, k, _ uintptr, extra *launchExtra) uintptr {
		return s.callInContext("cuLaunchKernelEx", func(f *Fake, _ int) driver.Code { return f.launch(k, *config, extra) })
	})
	s.add("cuTensorMapEncodeTiled", func(out *[16]uint64, dtype, rank uint32, address uint64, shape, strides *uint64, box, steps *uint32, interleave, swizzle, promotion, fill uint32) uintptr {
		return s.call("cuTensorMapEncodeTiled", func(*Fake) driver.Code {
			if uintptr(unsafe.Pointer(out))%128 != 0 || address%16 != 0 || interleave != 0 {
				return driver.InvalidValue
			}
			// The fake has a layout of its own: the scalars, then each dimension.
			*out = [16]uint64{address, uint64(dtype) | uint64(rank)<<8 | uint64(swizzle)<<16 | uint64(promotion)<<24 | uint64(fill)<<32}
			copy(out[2:7], unsafe.Slice(shape, rank))
			copy(out[7:11], unsafe.Slice(strides, rank-1))
			for i := range rank {
				out[11+i] = uint64(unsafe.Slice(box, rank)[i]) | uint64(unsafe.Slice(steps, rank)[i])<<32
			}
			return driver.Success
		})
	})
}
