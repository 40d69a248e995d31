package drivertest

import (
	"fmt"
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// words are the names and texts of codes, each terminated by a NUL.
var words = map[driver.Code][2][]byte{}

func init() {
	for code, w := range map[driver.Code][2]string{
		driver.Success:              {"CUDA_SUCCESS", "no error"},
		driver.InvalidValue:         {"CUDA_ERROR_INVALID_VALUE", "invalid argument"},
		driver.OutOfMemory:          {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
		driver.NotInitialized:       {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
		driver.NoDevice:             {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
		driver.InvalidDevice:        {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
		driver.InvalidContext:       {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
		driver.ECCUncorrectable:     {"CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
		driver.PeerUnsupported:      {"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these two devices"},
		driver.PeerAlreadyEnabled:   {"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
		driver.InvalidPTX:           {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
		driver.InvalidHandle:        {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
		driver.NotFound:             {"CUDA_ERROR_NOT_FOUND", "named symbol not found"},
		driver.NotReady:             {"CUDA_ERROR_NOT_READY", "device not ready"},
		driver.IllegalAddress:       {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
		driver.LaunchOutOfResources: {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
		driver.LaunchFailed:         {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
		driver.SystemDriverMismatch: {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
		driver.CaptureUnsupported:   {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
		driver.CaptureInvalidated:   {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
	} {
		words[code] = [2][]byte{append([]byte(w[0]), 0), append([]byte(w[1]), 0)}
	}
}

func word(code driver.Code, i int, out *unsafe.Pointer) uintptr {
	w, ok := words[code]
	if !ok {
		return uintptr(driver.InvalidValue)
	}
	*out = unsafe.Pointer(&w[i][0])
	return uintptr(driver.Success)
}

// attributes are the attributes of all devices, by number.
var attributes = map[uint32]int32{
	13: 1_980_000, 16: 132, 36: 3_201_000, 37: 6144, 38: 50 << 20, 97: sharedLimit,
}

const sharedLimit = 227 << 10

func (s *slot) addDevices() {
	s.add("cuGetErrorName", func(code uint32, out *unsafe.Pointer) uintptr { return word(driver.Code(code), 0, out) })
	s.add("cuGetErrorString", func(code uint32, out *unsafe.Pointer) uintptr { return word(driver.Code(code), 1, out) })
	s.add("cuDriverGetVersion", func(out *int32) uintptr {
		return s.call("cuDriverGetVersion", func(f *Fake) driver.Code {
			*out = int32(f.options.Version)
			return driver.Success
		})
	})
	s.add("cuInit", func(uintptr) uintptr {
		return s.call("cuInit", func(f *Fake) driver.Code { return f.options.Init })
	})
	s.add("cuDeviceGetCount", func(out *int32) uintptr {
		return s.call("cuDeviceGetCount", func(f *Fake) driver.Code {
			*out = int32(len(f.options.Devices))
			return driver.Success
		})
	})

	// ofDevice runs functions that query an existing device.
	ofDevice := func(name string, index int32, body func(d Device)) uintptr {
		return s.call(name, func(f *Fake) driver.Code {
			if index < 0 || int(index) >= len(f.options.Devices) {
				return driver.InvalidDevice
			}
			body(f.options.Devices[index])
			return driver.Success
		})
	}
	s.add("cuDeviceGet", func(out *int32, index int32) uintptr {
		return ofDevice("cuDeviceGet", index, func(Device) { *out = index })
	})
	s.add("cuDeviceGetName", func(out *byte, n int32, index int32) uintptr {
		return ofDevice("cuDeviceGetName", index, func(d Device) { putText(out, int(n), d.Name) })
	})
	s.add("cuDeviceGetPCIBusId", func(out *byte, n int32, index int32) uintptr {
		return ofDevice("cuDeviceGetPCIBusId", index, func(Device) { putText(out, int(n), fmt.Sprintf("0000:%02x:00.0", index+1)) })
	})
	s.add("cuDeviceGetUuid_v2", func(out *[16]byte, index int32) uintptr {
		return ofDevice("cuDeviceGetUuid", index, func(Device) {
			for i := range out {
				out[i] = byte(16*int(index) + i)
			}
		})
	})
	s.add("cuDeviceTotalMem_v2", func(out *uint64, index int32) uintptr {
		return ofDevice("cuDeviceTotalMem", index, func(d Device) { *out = uint64(d.Memory) })
	})
	s.add("cuDeviceGetAttribute", func(out *int32, attribute uint32, index int32) uintptr {
		return ofDevice("cuDeviceGetAttribute", index, func(d Device) {
			const major, minor = 75, 76
			switch attribute {
			case major:
				*out = int32(d.Capability.Major)
			case minor:
				*out = int32(d.Capability.Minor)
			default:
				*out = attributes[attribute]
			}
		})
	})

	s.add("cuDevicePrimaryCtxRetain", func(out *uintptr, index int32) uintptr {
		return s.call("cuDevicePrimaryCtxRetain", func(f *Fake) driver.Code {
			f.retained[int(index)]++
			*out = uintptr(index) + 1
			return driver.Success
		})
	})
	s.add("cuDevicePrimaryCtxRelease_v2", func(index int32) uintptr {
		return s.call("cuDevicePrimaryCtxRelease", func(f *Fake) driver.Code {
			if f.retained[int(index)] == 0 {
				return driver.InvalidContext
			}
			f.retained[int(index)]--
			return driver.Success
		})
	})
	s.add("cuCtxSetCurrent", func(context uintptr) uintptr {
		return s.call("cuCtxSetCurrent", func(f *Fake) driver.Code {
			f.current[thread()] = int(context)
			return driver.Success
		})
	})
	s.add("cuDeviceCanAccessPeer", func(out *int32, _, _ int32) uintptr {
		return s.call("cuDeviceCanAccessPeer", func(f *Fake) driver.Code {
			if *out = 1; f.options.Apart {
				*out = 0
			}
			return driver.Success
		})
	})
	s.add("cuCtxEnablePeerAccess", func(context uintptr, _ uint32) uintptr {
		return s.callInContext("cuCtxEnablePeerAccess", func(f *Fake, device int) driver.Code {
			way := [2]int{device, int(context) - 1}
			switch {
			case f.options.Apart || way[0] == way[1] || f.retained[way[1]] == 0:
				return driver.PeerUnsupported
			case f.reach[way]:
				return driver.PeerAlreadyEnabled
			}
			f.reach[way] = true
			return driver.Success
		})
	})
	s.add("cuCtxSynchronize", func() uintptr {
		return s.callInContext("cuCtxSynchronize", func(f *Fake, _ int) driver.Code { return f.notCapturing() })
	})
}

// putText writes as much of a text as fits, and a NUL.
func putText(out *byte, n int, text string) {
	room := unsafe.Slice(out, n)
	room[copy(room[:n-1], text)] = 0
}
