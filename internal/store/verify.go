package store

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/realizar/realizar/internal/fetch"
)

// A Fault is a file whose bytes do not match its digest.
type Fault struct {
	File    File
	Problem string
}

// Verify reads all files of a model and compares them with their digests. It returns the damaged
// files, and the files whose digests are unknown. progress is called with the bytes read.
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
	got, size, err := digestOf(ctx, f, f.Digest, progress)
	switch {
	case err != nil:
		return "", err
	case size != f.Size:
		return fmt.Sprintf("it has %d bytes, want %d", size, f.Size), nil
	case got != f.Digest:
		return fmt.Sprintf("it has the digest %s, want %s", got, f.Digest), nil
	}
	return "", nil
}

// digestOf reads a file. It returns its digest, of the same kind as kind, and its size.
func digestOf(ctx context.Context, f File, kind fetch.Digest, progress func(int64)) (fetch.Digest, int64, error) {
	r, err := os.Open(f.Path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = r.Close() }()
	sum := kind.New(f.Size)
	n, err := io.CopyBuffer(sum, &told{ctx, r, progress}, make([]byte, 1<<20))
	return kind.Of(sum), n, err
}
