package store

import (
	"context"
	"fmt"

	"github.com/realizar/realizar/internal/names"
)

// Copy gives a model another name in the own layout. A model of the own layout keeps its files and
// its manifest. The files of other models are copied, and progress is called with their bytes
// twice, while they are hashed and while they are copied.
func (s *Store) Copy(ctx context.Context, m *Model, to names.Name, progress func(int64)) error {
	if m.Place != OwnLayout {
		files := &Model{Files: m.Weights()}
		if err := WithDigests(ctx, files, progress); err != nil {
			return err
		}
		return s.Import(ctx, to, files.Files, progress)
	}
	p, err := s.PullOwn(ctx)
	if err != nil {
		return err
	}
	defer p.Release()
	if _, err := s.Find(m.Name); err != nil { // it may have been removed before the lock was taken
		return err
	}
	manifest, err := s.readManifest(m.Manifest)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	return p.Finish(ctx, to, manifest)
}
