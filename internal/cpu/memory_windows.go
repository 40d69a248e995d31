package cpu

import (
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/realizar/realizar/internal/plan"
)

// memoryStatus is MEMORYSTATUSEX of the Windows API.
type memoryStatus struct {
	length, load                uint32
	totalPhysical, freePhysical uint64
	totalPageFile, freePageFile uint64
	totalVirtual, freeVirtual   uint64
	freeExtendedVirtual         uint64
}

var globalMemoryStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// memory asks GlobalMemoryStatusEx.
func memory() plan.MemoryInfo {
	s := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	if globalMemoryStatus.Find() != nil {
		return plan.MemoryInfo{}
	}
	if ok, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&s))); ok == 0 || s.totalPhysical > 1<<62 {
		return plan.MemoryInfo{}
	}
	return plan.MemoryInfo{Free: int64(s.freePhysical), Total: int64(s.totalPhysical)}
}
