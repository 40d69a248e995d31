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

// What archives may hold: files alone, and no more bytes than a model's archive of that
// size could sensibly have, holes in files included.
const (
	maxArchiveFiles = 10_000
	archiveRoom     = 256 << 20 // whatever its size
	archiveRatio    = 8
)

// An unpacking is the archives of one model, which share a folder with the files that are
// in none.
type unpacking struct {
	files []string // all that the folder has
	room  int64    // bytes that the files of the archive may have yet
	sync  func(interface{ Sync() error }) error
}

// unpack puts an archive's files into the folder.
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

// entry puts one file there. Folders come with their files.
func (u *unpacking) entry(root *os.Root, t *tar.Reader, h *tar.Header) error {
	name := strings.TrimPrefix(h.Name, "./")
	switch h.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	default:
		return fmt.Errorf("%.80q is not a file (type %q); want only files", h.Name, h.Typeflag)
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
