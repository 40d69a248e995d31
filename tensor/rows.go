package tensor

import "fmt"

// A Source makes the rows of a derived tensor: one whose bytes lie nowhere as they
// are, since a file stores it as several tensors. They are made when they are asked
// for, as many as are asked for, so that a tensor takes no memory until somebody
// lays it out.
//
// What a Source reads may stride over all of its parts for every row: a few dozen
// rows at a time cost little more than one.
type Source interface {
	// ReadRows writes the bytes of rows lo to hi, hi not included, one after the
	// other to dst, which has exactly their length; the rows exist. It may be called
	// from many goroutines at once.
	ReadRows(dst []byte, lo, hi int) error
	// Parts are the tensors that the rows are made of.
	Parts() []*Tensor
}

// ReadRows writes the bytes of rows lo to hi, hi not included, to dst, which has
// exactly their length, wherever they come from. Many goroutines may call it. The
// error wraps [ErrSize] when there are no such rows or dst is of another length, and
// otherwise it is that of the tensor's Source.
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

// readBytes is about how much of a derived tensor is read at a time.
const readBytes = 1 << 20

// EachRows calls do with the bytes of all rows in order, some rows at a time. They
// are a view of Data or, for a derived tensor, of memory that the next call uses
// again. It ends with the first error, of ReadRows or of do.
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

// rowsFrom is the rows of a source from one on.
type rowsFrom struct {
	Source
	first int
}

func (r rowsFrom) ReadRows(dst []byte, lo, hi int) error {
	return r.Source.ReadRows(dst, r.first+lo, r.first+hi)
}
