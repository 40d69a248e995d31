package modelfile

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/realizar/realizar/tensor"
)

// Guard calls read and returns its error, passed through [File.Locate]. If read, on this goroutine,
// touches a part of the file that no longer exists, Guard returns such an error too; without Guard
// the process would crash.
//
// Files disappear in whole pages. If a file is truncated within a page, the rest of that page reads
// as zeros, which is not an error.
func (f *File) Guard(read func() error) error { return f.Locate(tensor.Guard(read)) }

// Locate returns a [*FormatError] with the file, the tensor and the offset if err wraps a
// [*tensor.FaultError] or a [*tensor.NotFiniteError] with an address in one of the file's mappings.
// Otherwise it returns err. It may be called after [File.Close].
func (f *File) Locate(err error) error {
	var fault *tensor.FaultError
	var number *tensor.NotFiniteError
	switch {
	case errors.As(err, &fault):
		if m, offset, ok := f.at(fault.Addr); ok {
			return f.damaged(m, offset, fault.Addr, m.missing(offset))
		}
	case errors.As(err, &number):
		if m, offset, ok := f.at(number.Addr); ok {
			return f.damaged(m, offset, number.Addr, number.Problem()+": the file is damaged; download it again")
		}
	}
	return err
}

// at returns the mapping that contains addr, and the offset in it.
func (f *File) at(addr uintptr) (m *mapping, offset int64, ok bool) {
	for _, m := range f.mappings {
		if offset, ok := within(m.data, addr); ok {
			return m, offset, true
		}
	}
	return nil, 0, false
}

func within(data []byte, addr uintptr) (offset int64, ok bool) {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	return int64(addr - start), addr >= start && addr-start < uintptr(len(data))
}

func (f *File) damaged(m *mapping, offset int64, addr uintptr, problem string) error {
	e := &FormatError{File: m.path, Offset: offset, Problem: problem, Err: ErrFormat}
	for _, t := range f.tensors {
		if part := partAt(t, addr); part != nil {
			e.Tensor = part.Name
			break
		}
	}
	return e
}

// partAt returns the tensor that holds the byte at addr: t or one of its parts, or nil.
func partAt(t *tensor.Tensor, addr uintptr) *tensor.Tensor {
	if _, ok := within(t.Data, addr); ok {
		return t
	}
	if t.Source != nil {
		for _, part := range t.Source.Parts() {
			if part := partAt(part, addr); part != nil {
				return part
			}
		}
	}
	return nil
}

// missing returns the reason why the file cannot be read at offset.
func (m *mapping) missing(offset int64) string {
	if info, err := os.Stat(m.path); err == nil && info.Size() <= offset {
		return fmt.Sprintf("the file was truncated while it was open, from %d bytes to %d; put the whole file back and open the model again",
			len(m.data), info.Size())
	}
	return "the file can no longer be read here: it changed after it was opened, or its disk fails; restore the whole file and open the model again"
}
