package emulate

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// arenaBytes is the size of an arena. Only pages that are written take memory.
const arenaBytes = 16 << 30

// arenas counts the arenas of the process. Each has its own address, which is also free in the
// programs that run kernels.
var arenas atomic.Int64

// newArena returns memory that other processes can map at the same address.
func newArena() (*os.File, []byte, error) {
	const noReplace = 0x100000 // MAP_FIXED_NOREPLACE
	memfd := uintptr(319)
	if runtime.GOARCH == "arm64" {
		memfd = 279
	}
	name := []byte("gpu\x00")
	fd, _, errno := syscall.Syscall(memfd, uintptr(unsafe.Pointer(&name[0])), 1, 0)
	if errno != 0 {
		return nil, nil, os.NewSyscallError("memfd_create", errno)
	}
	file := os.NewFile(fd, "gpu")
	if err := file.Truncate(arenaBytes); err != nil {
		return nil, nil, err
	}
	base := uintptr(0x1000_0000_0000) + uintptr(arenas.Add(1))<<36
	at, _, errno := syscall.Syscall6(syscall.SYS_MMAP, base, arenaBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|noReplace, fd, 0)
	if errno != 0 {
		return nil, nil, os.NewSyscallError("mmap", errno)
	}
	return file, unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), arenaBytes), nil
}

func freeArena(arena []byte) {
	_, _, _ = syscall.Syscall(syscall.SYS_MUNMAP, addressOf(arena), uintptr(len(arena)), 0)
}

func addressOf(arena []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(arena))) }
