package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// An outFile is a file that replaces the one at its path when it is complete. Until then, and after
// an error, the old file stays. A path that is not a regular file, such as a pipe, is written to
// directly.
type outFile struct {
	file    *os.File
	path    string
	partial string // the path until then; empty if written to directly
}

// newOutFile begins a file. An error names path or its folder, and the way out.
func newOutFile(path string) (*outFile, error) {
	if path == "" {
		return nil, errors.New("the name is empty: name a file")
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved // the link stays
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a folder: name a file", path)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &outFile{file: f, path: path}, err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, folderError(path, err)
	}
	partial := fmt.Sprintf("%s.partial-%08x", path, rand.Uint32())
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, folderError(path, err)
	}
	return &outFile{file: f, path: path, partial: partial}, nil
}

// folderError returns the error that no file can be made at path. It does not show the temporary
// name.
func folderError(path string, err error) error {
	folder := filepath.Dir(path)
	if _, absent := os.Stat(folder); errors.Is(absent, fs.ErrNotExist) {
		return fmt.Errorf("%s cannot be created: there is no folder %s; create it, or name a file in another", path, folder)
	}
	return fmt.Errorf("%s cannot be created in the folder %s: %w; name a file in a folder that you can write to", path, folder, cause(err))
}

// cause returns err without the operation and the path.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Write appends to the file.
func (f *outFile) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	if err != nil {
		err = &fs.PathError{Op: "write", Path: f.path, Err: cause(err)}
	}
	return n, err
}

// finish completes the file, or removes it if err is not nil. It returns err joined with its own
// errors.
func (f *outFile) finish(err error) error {
	err = errors.Join(err, f.file.Close())
	switch {
	case f.partial == "":
		return err
	case err != nil:
		return errors.Join(err, os.Remove(f.partial))
	}
	return os.Rename(f.partial, f.path)
}

// replaceFile replaces the file at path by what write writes.
func replaceFile(path string, write func(io.Writer) error) error {
	f, err := newOutFile(path)
	if err != nil {
		return err
	}
	return f.finish(write(f))
}
