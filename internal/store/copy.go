package store

import (
	"context"
	"fmt"

	"github.com/realizar/realizar/internal/names"
)

// Copy gives a model another name in the own layout. The files of a model that lies
// elsewhere are copied, and progress is told of their bytes twice: as they are hashed and
// as they are copied. A model of the own layout keeps its files and its manifest.
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
	if _, err := s.Find(m.Name); err != nil { // somebody may have removed it before nobody could
		return err
	}
	manifest, err := s.readManifest(m.Manifest)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	return p.Finish(ctx, to, manifest)
}
