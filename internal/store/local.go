package store

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
)

// Local is the model at a path, which the store need not have: a GGUF file with its
// other parts, or a folder. Its files have no digests.
func Local(path string) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	folder, want := path, ""
	if !info.IsDir() {
		folder, want = filepath.Dir(path), filepath.Base(path)
	}
	c := names.Choice{Files: []string{want}}
	if want == "" || strings.HasSuffix(want, ".gguf") {
		files, _, err := readFolder(folder)
		if err != nil {
			return nil, err
		}
		if c, err = names.Choose(files, want); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return local(path, folder, c)
}

// Folder returns the models in a folder and in its folders, by path: GGUF files whose parts are all
// there, and folders with safetensors. Folders whose names begin with a dot, and folders that
// cannot be read, are left out.
func Folder(path string) ([]*Model, error) {
	_, folders, err := readFolder(path)
	if err != nil {
		return nil, err
	}
	var all []*Model
	for _, name := range append([]string{"."}, folders...) {
		if name != "." && strings.HasPrefix(name, ".") {
			continue
		}
		folder := filepath.Join(path, name)
		files, _, err := readFolder(folder)
		if err != nil {
			continue
		}
		for _, c := range names.All(files) {
			if m, err := local(filepath.Join(folder, c.Main), folder, c); err == nil {
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// readFolder returns the names of the files and the folders in a folder, links included.
func readFolder(path string) (files, folders []string, err error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(path, e.Name()))
		switch {
		case err != nil: // a link that leads nowhere
		case info.IsDir():
			folders = append(folders, e.Name())
		default:
			files = append(files, e.Name())
		}
	}
	return files, folders, nil
}

// local is the model of a choice among the files of a folder, which path opens.
func local(path, folder string, c names.Choice) (*Model, error) {
	m := &Model{Name: names.Name{Kind: names.Path, Path: path}, Path: path, Quant: c.Quant}
	for _, name := range c.Files {
		at := filepath.Join(folder, name)
		info, err := os.Stat(at)
		if err != nil {
			return nil, err
		}
		m.Files = append(m.Files, File{Name: name, Path: at, Size: info.Size()})
	}
	return m, nil
}

// WithDigests gives every file of a model its SHA-256, computed from its bytes.
func WithDigests(ctx context.Context, m *Model, progress func(int64)) error {
	for i, f := range m.Files {
		d, size, err := digestOf(ctx, f, fetch.SHA256(""), progress)
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(f.Digest), "sha256:") && f.Digest != d {
			return fmt.Errorf("%s has the digest %s, want %s; remove the model and pull it again", f.Path, d, f.Digest)
		}
		m.Files[i].Digest, m.Files[i].Size = d, size
	}
	return nil
}

// Weights are the files of a model that can stand alone: without what only its registry
// knows.
func (m *Model) Weights() []File {
	if m.Place != OllamaStore {
		return m.Files
	}
	var all []File
	for _, f := range m.Files {
		if strings.HasSuffix(f.Name, ".gguf") {
			all = append(all, f)
		}
	}
	return all
}

// Import puts a model's files, which have digests, into the own layout under a name.
func (s *Store) Import(ctx context.Context, n names.Name, files []File, progress func(int64)) error {
	return s.importChecked(ctx, n, files, nil, progress)
}

// importChecked is Import of a model that check may refuse before it has its name.
func (s *Store) importChecked(ctx context.Context, n names.Name, files []File, check func(path string) error, progress func(int64)) error {
	manifest, config, err := Pack(files)
	if err != nil {
		return err
	}
	p, err := s.PullOwn(ctx)
	if err != nil {
		return err
	}
	defer p.Release()
	var missing int64
	for _, f := range files {
		missing += fetch.Missing(p.Blob(f.Digest), f.Size)
	}
	if err := p.CheckSpace(missing); err != nil {
		return err
	}
	for _, f := range files {
		if err := p.copy(ctx, f, progress); err != nil {
			return err
		}
	}
	if _, err := p.WriteBlob(config); err != nil {
		return err
	}
	return p.finish(ctx, n, manifest, check)
}

// copy copies a file to its place, checked on its way.
func (p *OwnPull) copy(ctx context.Context, f File, progress func(int64)) error {
	lock, err := p.Lock(ctx, f.Digest, nil)
	if err != nil {
		return err
	}
	defer lock.Release()
	if fetch.Whole(p.Blob(f.Digest), f.Size) {
		return nil
	}
	return p.s.CopyFile(ctx, f, p.Blob(f.Digest), progress)
}

// CopyFile copies a file that has a digest to a path, where it is when it is whole.
func (s *Store) CopyFile(ctx context.Context, f File, to string, progress func(int64)) (err error) {
	from, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(to), temporary+"*")
	if err != nil {
		return err
	}
	sum := f.Digest.New(f.Size)
	_, err = io.Copy(io.MultiWriter(out, sum), &told{ctx, from, progress})
	if err == nil && !f.Digest.Is(sum) {
		err = fmt.Errorf("%s has the digest %s, want %s: it has changed", f.Path, f.Digest.Of(sum), f.Digest)
	}
	if err == nil {
		err = out.Chmod(0o644)
	}
	if err == nil {
		err = s.sync(out)
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		_ = os.Remove(out.Name())
		return err
	}
	return fetch.SyncFolder(filepath.Dir(to), s.sync)
}

// told reads on while nobody interrupts, and tells how much.
type told struct {
	ctx      context.Context
	r        fs.File
	progress func(int64)
}

func (t *told) Read(p []byte) (int, error) {
	if t.ctx.Err() != nil {
		return 0, context.Cause(t.ctx)
	}
	n, err := t.r.Read(p)
	t.progress(int64(n))
	return n, err
}
