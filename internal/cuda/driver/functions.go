package driver

import "strings"

// A function identifies a driver function that this package calls.
type function int

const (
	fnInit function = iota
	fnDriverGetVersion
	fnGetErrorName
	fnGetErrorString

	fnDeviceGetCount
	fnDeviceGet
	fnDeviceGetName
	fnDeviceGetUUID
	fnDeviceGetPCIBusID
	fnDeviceTotalMem
	fnDeviceGetAttribute
	fnDevicePrimaryCtxRetain
	fnDevicePrimaryCtxRelease
	fnCtxSetCurrent
	fnCtxSynchronize
	fnDeviceCanAccessPeer
	fnCtxEnablePeerAccess

	fnMemAlloc
	fnMemFree
	fnMemGetInfo
	fnMemHostAlloc
	fnMemFreeHost
	fnMemcpyHtoD
	fnMemcpyDtoH
	fnMemcpyDtoD
	fnMemcpyHtoDAsync
	fnMemcpyDtoHAsync
	fnMemcpyDtoDAsync
	fnMemsetD8
	fnMemsetD32
	fnMemsetD8Async
	fnMemsetD32Async

	fnStreamCreate
	fnStreamDestroy
	fnStreamSynchronize
	fnStreamQuery
	fnStreamWaitEvent
	fnStreamBeginCapture
	fnStreamEndCapture
	fnEventCreate
	fnEventDestroy
	fnEventRecord
	fnEventSynchronize
	fnEventQuery
	fnEventElapsedTime

	fnModuleLoadDataEx
	fnModuleUnload
	fnModuleGetFunction
	fnFuncGetAttribute
	fnFuncSetAttribute
	fnOccupancy
	fnActiveClusters
	fnLaunchKernel
	fnLaunchKernelEx
	fnTensorMapEncodeTiled

	fnGraphInstantiate
	fnGraphGetNodes
	fnGraphDestroy
	fnGraphUpload
	fnGraphLaunch
	fnGraphExecDestroy

	functions
)

// symbols are the symbols to which cuda.h of CUDA 12 maps the functions' names.
var symbols = [functions]string{
	fnInit:             "cuInit",
	fnDriverGetVersion: "cuDriverGetVersion",
	fnGetErrorName:     "cuGetErrorName",
	fnGetErrorString:   "cuGetErrorString",

	fnDeviceGetCount:          "cuDeviceGetCount",
	fnDeviceGet:               "cuDeviceGet",
	fnDeviceGetName:           "cuDeviceGetName",
	fnDeviceGetUUID:           "cuDeviceGetUuid_v2",
	fnDeviceGetPCIBusID:       "cuDeviceGetPCIBusId",
	fnDeviceTotalMem:          "cuDeviceTotalMem_v2",
	fnDeviceGetAttribute:      "cuDeviceGetAttribute",
	fnDevicePrimaryCtxRetain:  "cuDevicePrimaryCtxRetain",
	fnDevicePrimaryCtxRelease: "cuDevicePrimaryCtxRelease_v2",
	fnCtxSetCurrent:           "cuCtxSetCurrent",
	fnCtxSynchronize:          "cuCtxSynchronize",
	fnDeviceCanAccessPeer:     "cuDeviceCanAccessPeer",
	fnCtxEnablePeerAccess:     "cuCtxEnablePeerAccess",

	fnMemAlloc:        "cuMemAlloc_v2",
	fnMemFree:         "cuMemFree_v2",
	fnMemGetInfo:      "cuMemGetInfo_v2",
	fnMemHostAlloc:    "cuMemHostAlloc",
	fnMemFreeHost:     "cuMemFreeHost",
	fnMemcpyHtoD:      "cuMemcpyHtoD_v2",
	fnMemcpyDtoH:      "cuMemcpyDtoH_v2",
	fnMemcpyDtoD:      "cuMemcpyDtoD_v2",
	fnMemcpyHtoDAsync: "cuMemcpyHtoDAsync_v2",
	fnMemcpyDtoHAsync: "cuMemcpyDtoHAsync_v2",
	fnMemcpyDtoDAsync: "cuMemcpyDtoDAsync_v2",
	fnMemsetD8:        "cuMemsetD8_v2",
	fnMemsetD32:       "cuMemsetD32_v2",
	fnMemsetD8Async:   "cuMemsetD8Async",
	fnMemsetD32Async:  "cuMemsetD32Async",

	fnStreamCreate:       "cuStreamCreate",
	fnStreamDestroy:      "cuStreamDestroy_v2",
	fnStreamSynchronize:  "cuStreamSynchronize",
	fnStreamQuery:        "cuStreamQuery",
	fnStreamWaitEvent:    "cuStreamWaitEvent",
	fnStreamBeginCapture: "cuStreamBeginCapture_v2",
	fnStreamEndCapture:   "cuStreamEndCapture",
	fnEventCreate:        "cuEventCreate",
	fnEventDestroy:       "cuEventDestroy_v2",
	fnEventRecord:        "cuEventRecord",
	fnEventSynchronize:   "cuEventSynchronize",
	fnEventQuery:         "cuEventQuery",
	fnEventElapsedTime:   "cuEventElapsedTime",

	fnModuleLoadDataEx:     "cuModuleLoadDataEx",
	fnModuleUnload:         "cuModuleUnload",
	fnModuleGetFunction:    "cuModuleGetFunction",
	fnFuncGetAttribute:     "cuFuncGetAttribute",
	fnFuncSetAttribute:     "cuFuncSetAttribute",
	fnOccupancy:            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
	fnActiveClusters:       "cuOccupancyMaxActiveClusters",
	fnLaunchKernel:         "cuLaunchKernel",
	fnLaunchKernelEx:       "cuLaunchKernelEx",
	fnTensorMapEncodeTiled: "cuTensorMapEncodeTiled",

	fnGraphInstantiate: "cuGraphInstantiateWithFlags",
	fnGraphGetNodes:    "cuGraphGetNodes",
	fnGraphDestroy:     "cuGraphDestroy",
	fnGraphUpload:      "cuGraphUpload",
	fnGraphLaunch:      "cuGraphLaunch",
	fnGraphExecDestroy: "cuGraphExecDestroy",
}

// String returns the name in the documentation.
func (f function) String() string {
	return strings.TrimSuffix(symbols[f], "_v2")
}
