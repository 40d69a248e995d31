package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
)

// The folders of a repository in the hub's cache, the folder of locks next to the repositories, and
// the prefix of a repository's folder.
const (
	blobsFolder     = "blobs"
	snapshotsFolder = "snapshots"
	refsFolder      = "refs"
	locksFolder     = ".locks"
	repoPrefix      = "models--"
)

// Bounds on a snapshot: the number of files, and the depth of folders.
const (
	maxSnapshotFiles = 20_000
	maxSnapshotDepth = 8
)

func repoFolder(n names.Name) string {
	return repoPrefix + strings.ReplaceAll(n.RepoID(), "/", "--")
}

// repoOf returns the repository that a folder's name stands for.
func repoOf(folder string) (names.Name, bool) {
	id, ok := strings.CutPrefix(folder, repoPrefix)
	if !ok {
		return names.Name{}, false
	}
	n, err := names.Parse("hf:" + strings.Replace(id, "--", "/", 1))
	return n, err == nil
}

// commit returns the commit of a name: its revision, or the commit that refs has for it.
func (s *Store) commit(n names.Name) (string, error) {
	revision := or(n.Revision, names.DefaultRevision)
	if names.IsCommit(revision) {
		return revision, nil
	}
	data, err := readSmall(filepath.Join(s.Hub, repoFolder(n), refsFolder, filepath.FromSlash(revision)), 1024)
	if err != nil {
		return "", err
	}
	commit := strings.TrimSpace(string(data))
	if !names.IsCommit(commit) {
		return "", fmt.Errorf("%s: refs/%s holds no commit", repoFolder(n), revision)
	}
	return commit, nil
}

func (s *Store) findHub(n names.Name) (*Model, error) {
	commit, err := s.commit(n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(n, nil)
	}
	if err != nil {
		return nil, err
	}
	files, err := s.snapshot(n, commit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(n, nil)
	}
	if err != nil {
		return nil, err
	}
	choice, err := names.Choose(sortedKeys(files), n.Quant)
	if errors.Is(err, names.ErrNoModel) {
		return nil, absent(n, err)
	}
	if err != nil {
		return nil, err
	}
	return s.hubModel(n, commit, choice, files), nil
}

func sortedKeys(files map[string]File) []string {
	all := make([]string, 0, len(files))
	for name := range files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func (s *Store) hubModel(n names.Name, commit string, c names.Choice, files map[string]File) *Model {
	m := &Model{Name: n, Place: HubCache, Quant: c.Quant, Commit: commit}
	m.Path = filepath.Join(s.Hub, repoFolder(n), snapshotsFolder, commit, filepath.FromSlash(c.Main))
	for _, name := range c.Files {
		m.Files = append(m.Files, files[name])
		if info, err := os.Stat(files[name].Path); err == nil && info.ModTime().After(m.Modified) {
			m.Modified = info.ModTime()
		}
	}
	return m
}

// snapshot returns the files of a commit. A link to a missing file is left out. A link to a place
// outside the repository's blobs is an error.
func (s *Store) snapshot(n names.Name, commit string) (map[string]File, error) {
	repo := filepath.Join(s.Hub, repoFolder(n))
	root := filepath.Join(repo, snapshotsFolder, commit)
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	blobs, err := filepath.EvalSymlinks(filepath.Join(repo, blobsFolder))
	if err != nil {
		blobs = real // without symbolic links there may be no blobs
	}
	files := map[string]File{}
	err = filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == root {
			return err
		}
		name, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && strings.Count(name, "/") >= maxSnapshotDepth:
			return fs.SkipDir
		case d.IsDir(), strings.HasPrefix(path.Base(name), temporary):
			return nil
		case len(files) >= maxSnapshotFiles:
			return fmt.Errorf("%s has more than %d files", root, maxSnapshotFiles)
		}
		target, err := filepath.EvalSymlinks(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !within(target, blobs) && !within(target, real) {
			return fmt.Errorf("%s leads to %s, out of the repository's blobs; remove the link and pull the model again", at, target)
		}
		info, err := os.Stat(target)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		files[name] = File{Name: name, Path: target, Size: info.Size(), Digest: blobDigest(filepath.Base(target))}
		return nil
	})
	return files, err
}

func within(path, folder string) bool {
	return strings.HasPrefix(path, folder+string(filepath.Separator))
}

// blobDigest returns the digest that a blob's name stands for.
func blobDigest(name string) fetch.Digest {
	switch {
	case len(name) == 64 && isHex(name):
		return fetch.SHA256(name)
	case len(name) == 40 && isHex(name):
		return fetch.GitSHA1(name)
	}
	return ""
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// listHub returns the models of all repositories and commits. A model that several commits share is
// listed once, under a commit that a branch names.
func (s *Store) listHub() ([]*Model, error) {
	if s.Hub == "" {
		return nil, nil
	}
	repos, err := os.ReadDir(s.Hub)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []*Model
	var errs []error
	for _, d := range repos {
		n, ok := repoOf(d.Name())
		if !ok {
			continue
		}
		models, err := s.listRepo(n)
		all, errs = append(all, models...), append(errs, err)
	}
	return all, errors.Join(err, errors.Join(errs...))
}

func (s *Store) listRepo(n names.Name) (all []*Model, err error) {
	versions, err := os.ReadDir(filepath.Join(s.Hub, repoFolder(n), snapshotsFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	revisions := s.revisions(n)
	commits := make([]string, 0, len(versions))
	for _, v := range versions {
		if names.IsCommit(v.Name()) {
			commits = append(commits, v.Name())
		}
	}
	slices.SortStableFunc(commits, func(a, b string) int { return rank(revisions[a]) - rank(revisions[b]) })
	seen := map[string]bool{}
	var errs []error
	for _, commit := range commits {
		files, err := s.snapshot(n, commit)
		errs = append(errs, err)
		for _, c := range names.All(sortedKeys(files)) {
			named := n
			named.Revision = or(revisions[commit], commit)
			if named.Revision == names.DefaultRevision {
				named.Revision = ""
			}
			named.Quant = or(c.Quant, c.Main)
			m := s.hubModel(named, commit, c, files)
			// If two files have the same quantization, the quantization names the first; the others
			// are named by their paths.
			if again, err := s.findHub(named); err != nil || again.Path != m.Path {
				m.Name.Quant = or(c.Main, c.Quant)
			}
			if key := m.Files[len(m.Files)-1].Path; !seen[key] {
				seen[key] = true
				all = append(all, m)
			}
		}
	}
	return all, errors.Join(errs...)
}

// rank orders main before other branches, and branches before bare commits.
func rank(revision string) int {
	switch revision {
	case names.DefaultRevision:
		return 0
	case "":
		return 2
	}
	return 1
}

// revisions returns a branch or tag for each commit that has one; main if main is one of several.
func (s *Store) revisions(n names.Name) map[string]string {
	root := filepath.Join(s.Hub, repoFolder(n), refsFolder)
	byCommit := map[string]string{}
	count := 0
	_ = filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return nil //nolint:nilerr // unreadable files name nothing
		}
		if count++; count > maxSnapshotFiles {
			return fs.SkipAll
		}
		name, err := filepath.Rel(root, at)
		if err != nil || names.CheckRevision(filepath.ToSlash(name)) != nil {
			return nil //nolint:nilerr // not the name of a revision
		}
		data, err := readSmall(at, 1024)
		if commit := strings.TrimSpace(string(data)); err == nil && names.IsCommit(commit) && byCommit[commit] != names.DefaultRevision {
			byCommit[commit] = filepath.ToSlash(name)
		}
		return nil
	})
	return byCommit
}

// A HubPull is a pull of a model from the hub. No other process removes files of the repository
// until Release.
type HubPull struct {
	s      *Store
	name   names.Name
	commit string
	lock   *Lock
}

// PullHub begins a pull of a commit's files.
func (s *Store) PullHub(ctx context.Context, n names.Name, commit string) (*HubPull, error) {
	lock, err := takeLock(ctx, s.hubLock(n, "realizar"), true, nil)
	if err != nil {
		return nil, err
	}
	p := &HubPull{s: s, name: n, commit: commit, lock: lock}
	for _, folder := range []string{blobsFolder, refsFolder, snapshotsFolder} {
		if err := os.MkdirAll(filepath.Join(s.Hub, repoFolder(n), folder), 0o777); err != nil {
			lock.Release()
			return nil, err
		}
	}
	return p, nil
}

func (s *Store) hubLock(n names.Name, what string) string {
	return filepath.Join(s.Hub, locksFolder, repoFolder(n), what+".lock")
}

// Release ends the pull.
func (p *HubPull) Release() { p.lock.Release() }

// Blob returns the path of a file's bytes.
func (p *HubPull) Blob(d fetch.Digest) string {
	return filepath.Join(p.s.Hub, repoFolder(p.name), blobsFolder, d.Hex())
}

// Lock waits until no other process downloads the file. It calls waiting, unless nil, if it has to
// wait.
func (p *HubPull) Lock(ctx context.Context, d fetch.Digest, waiting func()) (*Lock, error) {
	return takeLock(ctx, p.s.hubLock(p.name, d.Hex()), false, waiting)
}

// CheckSpace returns an error if the disk has no room for want bytes.
func (p *HubPull) CheckSpace(want int64) error { return checkSpace(p.s.Hub, want, "HF_HUB_CACHE") }

// Finish gives the files their names, in order, and points the revision at the commit. All files
// must have been downloaded.
func (p *HubPull) Finish(ctx context.Context, files []File) error {
	lock, err := takeLock(ctx, p.s.hubLock(p.name, "realizar-names"), false, nil)
	if err != nil {
		return err
	}
	defer lock.Release()
	for _, f := range files {
		info, err := os.Stat(p.Blob(f.Digest))
		if err != nil {
			return err
		}
		if info.Size() != f.Size {
			return fmt.Errorf("%s has %d bytes where %d are due", p.Blob(f.Digest), info.Size(), f.Size)
		}
	}
	repo := filepath.Join(p.s.Hub, repoFolder(p.name))
	root, err := os.OpenRoot(repo) // no link leads out of it
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, f := range files {
		if err := p.link(root, f); err != nil {
			return err
		}
	}
	if err := fetch.SyncFolder(filepath.Join(repo, snapshotsFolder, p.commit), p.s.sync); err != nil {
		return err
	}
	revision := or(p.name.Revision, names.DefaultRevision)
	if names.IsCommit(revision) {
		return nil
	}
	return p.s.replace(filepath.Join(repo, refsFolder, filepath.FromSlash(revision)), []byte(p.commit))
}

// link makes one name of a snapshot. A name that leads to another file is replaced.
func (p *HubPull) link(root *os.Root, f File) error {
	name := path.Join(snapshotsFolder, p.commit, f.Name)
	target := strings.Repeat("../", 2+strings.Count(f.Name, "/")) + path.Join(blobsFolder, f.Digest.Hex())
	if have, err := root.Readlink(filepath.FromSlash(name)); err == nil && filepath.ToSlash(have) == target {
		return nil
	}
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o777); err != nil {
		return err
	}
	beside := path.Join(path.Dir(name), temporary+f.Digest.Hex())
	if err := root.Remove(filepath.FromSlash(beside)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := root.Symlink(filepath.FromSlash(target), filepath.FromSlash(beside)); err != nil {
		// Without symbolic links, the file gets a second name.
		if err := root.Link(filepath.FromSlash(path.Join(blobsFolder, f.Digest.Hex())), filepath.FromSlash(beside)); err != nil {
			return err
		}
	}
	return root.Rename(filepath.FromSlash(beside), filepath.FromSlash(name))
}
