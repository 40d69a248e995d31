package tensor

import "fmt"

// A Source computes the rows of a derived tensor: a tensor whose bytes do not exist in a file,
// which stores it as several tensors. Rows are computed when they are read, so that the tensor
// itself takes no memory.
//
// To compute one row, a Source may have to read from all of its parts: a few dozen rows at a time
// cost little more than one.
type Source interface {
	// ReadRows writes the bytes of rows lo to hi, hi not included, to dst, whose length is exactly
	// theirs. The rows must exist. ReadRows must be safe for concurrent use.
	ReadRows(dst []byte, lo, hi int) error
	// Parts returns the tensors from which the rows are computed.
	Parts() []*Tensor
}

// ReadRows writes the bytes of rows lo to hi, hi not included, to dst, whose length must be exactly
// theirs. It works for derived tensors and others, and is safe for concurrent use. The error wraps
// [ErrSize] if a row does not exist or dst has another length. Otherwise it is the error of the
// tensor's Source.
func (t *Tensor) ReadRows(dst []byte, lo, hi int) error {
	if lo < 0 || lo > hi || hi > t.Rows() {
		return fmt.Errorf("tensor: %s: %w: rows %d to %d of %d", t.Name, ErrSize, lo, hi, t.Rows())
	}
	n := t.RowBytes()
	if len(dst) != (hi-lo)*n {
		return fmt.Errorf("tensor: %s: %w: %d bytes for rows %d to %d, which take %d", t.Name, ErrSize, len(dst), lo, hi, (hi-lo)*n)
	}
	if t.Source == nil {
		copy(dst, t.Data[lo*n:hi*n])
		return nil
	}
	if len(dst) == 0 {
		return nil
	}
	return t.Source.ReadRows(dst, lo, hi)
}

// readBytes is the approximate number of bytes of a derived tensor that are read at a time.
const readBytes = 1 << 20

// EachRows calls do with the bytes of all rows in order, some rows at a time. rows is a view of
// Data or, for a derived tensor, of memory that the next call reuses. EachRows stops at the first
// error of ReadRows or do.
func (t *Tensor) EachRows(do func(lo int, rows []byte) error) error {
	if t.Source == nil || t.Size() == 0 {
		return do(0, t.Data)
	}
	rows, n := t.Rows(), t.RowBytes()
	step := max(1, min(rows, readBytes/n))
	piece := make([]byte, step*n)
	for lo := 0; lo < rows; lo += step {
		hi := min(lo+step, rows)
		if err := t.ReadRows(piece[:(hi-lo)*n], lo, hi); err != nil {
			return err
		}
		if err := do(lo, piece[:(hi-lo)*n]); err != nil {
			return err
		}
	}
	return nil
}

// rowsFrom is the rows of a source from first on.
type rowsFrom struct {
	Source
	first int
}

func (r rowsFrom) ReadRows(dst []byte, lo, hi int) error {
	return r.Source.ReadRows(dst, r.first+lo, r.first+hi)
}
