package store

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/realizar/realizar/internal/fetch"
)

// A Fault is a file that is not what it is called.
type Fault struct {
	File    File
	Problem string
}

// Verify reads all files of a model and compares them with their digests. Progress is
// told of bytes; it returns the files that are damaged, and those of which nothing says
// what they should be.
func (s *Store) Verify(ctx context.Context, m *Model, progress func(int64)) (damaged []Fault, unknown []File, err error) {
	for _, f := range m.Files {
		if f.Digest == "" {
			unknown = append(unknown, f)
			continue
		}
		problem, err := verify(ctx, f, progress)
		if err != nil {
			return damaged, unknown, err
		}
		if problem != "" {
			damaged = append(damaged, Fault{f, problem})
		}
	}
	return damaged, unknown, nil
}

func verify(ctx context.Context, f File, progress func(int64)) (problem string, err error) {
	r, err := os.Open(f.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	info, err := r.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() != f.Size {
		return fmt.Sprintf("it has %d bytes, want %d", info.Size(), f.Size), nil
	}
	sum := f.Digest.New(f.Size)
	buf := make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := r.Read(buf)
		sum.Write(buf[:n])
		progress(int64(n))
		if err == io.EOF { //nolint:errorlint // a file returns it as it is
			if !f.Digest.Is(sum) {
				return fmt.Sprintf("it has the digest %s, want %s", f.Digest.Of(sum), f.Digest), nil
			}
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", context.Cause(ctx)
}

// Digest computes the SHA-256 of a file.
func Digest(ctx context.Context, path string, progress func(int64)) (fetch.Digest, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	d := fetch.SHA256("")
	sum := d.New(0)
	buf := make([]byte, 1<<20)
	size := int64(0)
	for ctx.Err() == nil {
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		size += int64(n)
		progress(int64(n))
		if err == io.EOF { //nolint:errorlint // a file returns it as it is
			return d.Of(sum), size, nil
		}
		if err != nil {
			return "", 0, err
		}
	}
	return "", 0, context.Cause(ctx)
}
