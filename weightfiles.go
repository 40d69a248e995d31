package realizar

import (
	"errors"
	"strings"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// weightFiles are the files whose weights a program reads: that of the model, and that of its head if
// the head has one of its own.
type weightFiles []*modelfile.File

// Locate passes err through [modelfile.File.Locate] of each file.
func (w weightFiles) Locate(err error) error {
	for _, f := range w {
		err = f.Locate(err)
	}
	return err
}

// Guard is [modelfile.File.Guard] for all files.
func (w weightFiles) Guard(read func() error) error { return w.Locate(tensor.Guard(read)) }

// Of returns the file with the weight t.
func (w weightFiles) Of(t *tensor.Tensor) *modelfile.File {
	for _, f := range w[1:] {
		if own, ok := f.Tensor(t.Name); ok && own == t {
			return f
		}
	}
	return w[0]
}

// ReleaseTensor is [modelfile.File.ReleaseTensor] of each file.
func (w weightFiles) ReleaseTensor(t *tensor.Tensor) {
	for _, f := range w {
		f.ReleaseTensor(t)
	}
}

// Version returns a string that changes when one of the files does.
func (w weightFiles) Version() string {
	var text strings.Builder
	for _, f := range w {
		text.WriteString(f.Version())
	}
	return text.String()
}

// Close closes all files.
func (w weightFiles) Close() error {
	var errs []error
	for _, f := range w {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
