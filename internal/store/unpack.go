package store

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/realizar/realizar/internal/names"
)

// Bounds on archives: the number of files, and their total size, holes included. The total may be
// archiveRatio times the archive's size plus archiveRoom.
const (
	maxArchiveFiles = 10_000
	archiveRoom     = 256 << 20 // bytes
	archiveRatio    = 8
)

// An unpacking unpacks the archives of one model into a folder, which may already have files.
type unpacking struct {
	files []string // all files in the folder
	room  int64    // bytes left for the archive's files
	sync  func(interface{ Sync() error }) error
}

// unpack unpacks an archive into the folder root.
func (u *unpacking) unpack(ctx context.Context, root *os.Root, archive string, kind layerKind) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var r io.Reader = bufio.NewReaderSize(f, 1<<20)
	switch kind {
	case layerGzip:
		if r, err = gzip.NewReader(r); err != nil {
			return archiveError(archive, err)
		}
	case layerZstd:
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(256<<20), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return archiveError(archive, err)
		}
		defer z.Close()
		r = z
	}
	u.room = archiveRoom + archiveRatio*info.Size()
	limit := &io.LimitedReader{R: r, N: u.room + maxArchiveFiles*(4<<10)} // with headers
	t := tar.NewReader(limit)
	for ctx.Err() == nil {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			if err := names.CheckFiles(u.files); err != nil {
				return archiveError(archive, err)
			}
			return nil
		case limit.N <= 0, err == nil && h.Size > u.room:
			return archiveError(archive, fmt.Errorf("it holds more than %d times its size", archiveRatio))
		case err != nil:
			return archiveError(archive, err)
		}
		if err := u.entry(root, t, h); err != nil {
			return archiveError(archive, err)
		}
	}
	return context.Cause(ctx)
}

func archiveError(archive string, err error) error {
	return fmt.Errorf("the archive %.12s: %w; nothing of it is used", filepath.Base(archive), err)
}

// entry writes one file of the archive. Folders are created with their files.
func (u *unpacking) entry(root *os.Root, t *tar.Reader, h *tar.Header) error {
	name := strings.TrimPrefix(h.Name, "./")
	switch h.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	default:
		return fmt.Errorf("%.80q is no file (type %q); want files alone", h.Name, h.Typeflag)
	}
	u.room -= h.Size
	if len(u.files) >= maxArchiveFiles {
		return fmt.Errorf("more than %d files", maxArchiveFiles)
	}
	u.files = append(u.files, name)
	if err := names.CheckFile(name); err != nil {
		return err
	}
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(filepath.FromSlash(dir), 0o777); err != nil {
			return err
		}
	}
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, t)
	if err == nil && n != h.Size {
		err = io.ErrUnexpectedEOF
	}
	return errors.Join(err, u.sync(f), f.Close())
}
