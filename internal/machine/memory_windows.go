package machine

import (
	"unsafe"

	"golang.org/x/sys/windows"
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

// ReadMemory returns the memory by GlobalMemoryStatusEx.
func ReadMemory() Memory {
	s := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	if globalMemoryStatus.Find() != nil {
		return Memory{}
	}
	if ok, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&s))); ok == 0 || s.totalPhysical > 1<<62 {
		return Memory{}
	}
	return Memory{Free: int64(s.freePhysical), Total: int64(s.totalPhysical)}
}
