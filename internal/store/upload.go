package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/fetch"
)

// uploadsFolder is the part of the own folder with files that clients have sent and that
// no model has yet, by their SHA-256.
const uploadsFolder = "uploads"

// uploadKept is how long a file that was uploaded waits for its model.
const uploadKept = 24 * time.Hour

// spaceEvery is after how many bytes of an upload the room on the disk is looked at again.
const spaceEvery = 64 << 20

// ErrDigest says that a file has another digest than its sender says.
var ErrDigest = errors.New("the file has another digest")

func (s *Store) uploads() string { return filepath.Join(s.Own, uploadsFolder) }

// Uploaded returns the file with the SHA-256 hex where an upload or a model of the own
// layout has it, and reports whether that is so. It has no name.
func (s *Store) Uploaded(hex string) (File, bool) {
	for _, at := range []string{filepath.Join(s.uploads(), hex), s.ownBlob(hex)} {
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() {
			return File{Path: at, Size: info.Size(), Digest: fetch.SHA256(hex)}, true
		}
	}
	return File{}, false
}

// Upload keeps what r brings, whose SHA-256 is hex, for a day or until [Store.CreateOwn]
// makes a model of it. The error wraps [ErrDigest] where r brings something else, and is a
// [SpaceError] where the disk has no room. size is how much r will bring, or -1.
func (s *Store) Upload(ctx context.Context, hex string, r io.Reader, size int64) (err error) {
	if err := os.MkdirAll(s.uploads(), 0o777); err != nil {
		return err
	}
	if err := s.removeUploads(time.Now()); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.uploads(), temporary+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	sum := fetch.SHA256(hex).New(0)
	came, err := s.receive(ctx, io.MultiWriter(f, sum), r, size)
	switch {
	case err != nil:
	case !fetch.SHA256(hex).Is(sum):
		err = fmt.Errorf("%w: %d bytes came with %s, and it was called %s", ErrDigest, came, fetch.SHA256(hex).Of(sum), fetch.SHA256(hex))
	default:
		err = errors.Join(f.Chmod(0o644), s.sync(f))
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(s.uploads(), hex)); err != nil {
		return err
	}
	return fetch.SyncFolder(s.uploads(), s.sync)
}

// receive writes what r brings while the disk has room.
func (s *Store) receive(ctx context.Context, w io.Writer, r io.Reader, size int64) (came int64, err error) {
	for ctx.Err() == nil {
		if err := checkSpace(s.Own, max(spaceEvery, size-came), "REALIZAR_HOME"); err != nil {
			return came, err
		}
		n, err := io.CopyN(w, r, spaceEvery)
		came += n
		if errors.Is(err, io.EOF) {
			return came, nil
		}
		if err != nil {
			return came, err
		}
	}
	return came, context.Cause(ctx)
}

// removeUploads removes what nobody has made a model of for too long.
func (s *Store) removeUploads(now time.Time) error {
	for _, g := range s.oldUploads(now) {
		if err := os.Remove(g.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// oldUploads are the files that no model was made of in time. The time of one that is
// coming is that of its last bytes.
func (s *Store) oldUploads(now time.Time) (all []Garbage) {
	entries, err := os.ReadDir(s.uploads())
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > uploadKept {
			all = append(all, Garbage{Path: filepath.Join(s.uploads(), e.Name()), Size: info.Size(), Why: "of an upload that no model was made of"})
		}
	}
	return all
}

// CreateOwn makes a model of files that [Store.Uploaded] has, under the names that m gives
// them. check is called with the path that opens the model before the model has its name,
// and its error ends the making.
func (s *Store) CreateOwn(ctx context.Context, m *Model, check func(path string) error) error {
	p, err := s.PullOwn(ctx)
	if err != nil {
		return err
	}
	defer p.Release()
	for _, f := range m.Files {
		to := p.Blob(f.Digest)
		if fetch.Whole(to, f.Size) {
			continue
		}
		if err := os.Rename(filepath.Join(s.uploads(), f.Digest.Hex()), to); err != nil && !fetch.Whole(to, f.Size) {
			return err
		}
	}
	files := slices.Clone(m.Files)
	for i := range files {
		files[i].Path = p.Blob(files[i].Digest)
	}
	return s.importChecked(ctx, m.Name, files, check, func(int64) {})
}
