package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/names"
)

// ErrForeign says that a model is not removed as another program keeps it.
var ErrForeign = errors.New("is Ollama's, which keeps count of it")

// Remove removes a model: its names first, and then the files that no other model has.
// It returns how many bytes that freed. A model that somebody pulls is not removed.
func (s *Store) Remove(m *Model) (freed int64, err error) {
	switch m.Place {
	case HubCache:
		return s.removeHub(m)
	case OwnLayout:
		return s.removeOwn(m)
	}
	return 0, fmt.Errorf("%s %w: ollama rm %s removes it", m.Name, ErrForeign, strings.TrimPrefix(m.Name.String(), "ollama:"))
}

// ErrPulled says that a model is not removed as somebody pulls it, or another one to the
// same place.
var ErrPulled = errors.New("it is being pulled; try again when that has ended")

// busy says that a lock is somebody's.
func busy(what string, err error) error {
	if errors.Is(err, errLocked) {
		return fmt.Errorf("%s: %w", what, ErrPulled)
	}
	return err
}

func (s *Store) removeHub(m *Model) (freed int64, err error) {
	lock, err := tryLock(s.hubLock(m.Name, "realizar"), false)
	if err != nil {
		return 0, busy(m.Name.String(), err)
	}
	defer lock.Release()
	repo := filepath.Join(s.Hub, repoFolder(m.Name))
	version := filepath.Join(repo, snapshotsFolder, m.Commit)
	for i := len(m.Files) - 1; i >= 0; i-- { // what says that the model is whole goes first
		at := filepath.Join(version, filepath.FromSlash(m.Files[i].Name))
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		removeEmpty(filepath.Dir(at), version)
	}
	if os.Remove(version) == nil {
		if err := s.removeRefs(m.Name, m.Commit); err != nil {
			return 0, err
		}
	}
	named, err := s.namedBlobs(m.Name)
	if err != nil {
		return 0, err
	}
	for _, f := range m.Files {
		if !named[filepath.Base(f.Path)] {
			if err := os.Remove(f.Path); err == nil {
				freed += f.Size
			} else if !errors.Is(err, fs.ErrNotExist) {
				return freed, err
			}
		}
	}
	s.removeRepo(repo)
	return freed, nil
}

// removeEmpty removes folders that have become empty, up to one that stays.
func removeEmpty(folder, stays string) {
	for within(folder, stays) && os.Remove(folder) == nil {
		folder = filepath.Dir(folder)
	}
}

// removeRefs removes the branches and tags of a commit that is gone.
func (s *Store) removeRefs(n names.Name, commit string) error {
	root := filepath.Join(s.Hub, repoFolder(n), refsFolder)
	return filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := readSmall(at, 1024)
		if err == nil && strings.TrimSpace(string(data)) == commit {
			return os.Remove(at)
		}
		return nil
	})
}

// removeRepo removes a repository of which nothing is left.
func (s *Store) removeRepo(repo string) {
	if os.Remove(filepath.Join(repo, snapshotsFolder)) != nil {
		return
	}
	_ = os.RemoveAll(filepath.Join(repo, ".no_exist"))
	for _, folder := range []string{blobsFolder, refsFolder, ""} {
		_ = os.Remove(filepath.Join(repo, folder))
	}
}

// namedBlobs are the blobs that some version of a repository has.
func (s *Store) namedBlobs(n names.Name) (map[string]bool, error) {
	named := map[string]bool{}
	versions, err := os.ReadDir(filepath.Join(s.Hub, repoFolder(n), snapshotsFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return named, nil
	}
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		files, err := s.snapshot(n, v.Name())
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			named[filepath.Base(f.Path)] = true
		}
	}
	return named, nil
}

func (s *Store) removeOwn(m *Model) (freed int64, err error) {
	lock, err := tryLock(s.ownLock("realizar"), false)
	if err != nil {
		return 0, busy(m.Name.String(), err)
	}
	defer lock.Release()
	index, err := s.readIndex()
	if err != nil {
		return 0, err
	}
	if err := s.writeIndex(without(index.Manifests, m.Name)); err != nil {
		return 0, err
	}
	garbage, err := s.ownGarbage(time.Now())
	if err != nil {
		return 0, err
	}
	for _, g := range garbage {
		if err := os.RemoveAll(g.Path); err != nil {
			return freed, err
		}
		freed += g.Size
	}
	return freed, nil
}
