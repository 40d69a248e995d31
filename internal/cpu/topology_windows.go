package cpu

import (
	"encoding/binary"
	"math"
	"runtime"
	"unsafe"

	"golang.org/x/sys/windows"
)

// readTopology counts the core records of GetLogicalProcessorInformationEx. The Go runtime handles
// the process's affinity.
func readTopology() topology {
	t := topology{limit: math.MaxInt32}
	const relationProcessorCore = 0
	call := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetLogicalProcessorInformationEx")
	if call.Find() != nil {
		return t
	}
	var size uint32
	_, _, _ = call.Call(relationProcessorCore, 0, uintptr(unsafe.Pointer(&size))) // fails, and returns the size
	if size == 0 || size > 1<<20 {
		return t
	}
	records := make([]byte, size)
	if ok, _, _ := call.Call(relationProcessorCore, uintptr(unsafe.Pointer(&records[0])), uintptr(unsafe.Pointer(&size))); ok == 0 {
		return t
	}
	n := 0
	for records = records[:min(int(size), len(records))]; len(records) >= 8; n++ {
		length := int(binary.LittleEndian.Uint32(records[4:])) // length of this record, after its kind
		if length < 8 || length > len(records) {
			break
		}
		records = records[length:]
	}
	t.cores = make([][]int, min(n, runtime.NumCPU()))
	return t
}

// settle does nothing: the system places threads well.
func settle([]int) {}
