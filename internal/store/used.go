package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// usedAt returns the path of the file whose time is the last use of a model.
func (s *Store) usedAt(m *Model) string {
	sum := sha256.Sum256([]byte(m.Path))
	return filepath.Join(s.Own, usedFolder, hex.EncodeToString(sum[:16]))
}

// Used records that a model is used now. Errors are ignored, so that they do not prevent the use.
func (s *Store) Used(m *Model, now time.Time) {
	at := s.usedAt(m)
	if err := os.Chtimes(at, now, now); errors.Is(err, fs.ErrNotExist) {
		if os.MkdirAll(filepath.Dir(at), 0o777) == nil && os.WriteFile(at, []byte(m.Name.String()+"\n"), 0o600) == nil {
			_ = os.Chtimes(at, now, now)
		}
	}
}

// LastUsed returns the time of a model's last use, or zero if none was recorded.
func (s *Store) LastUsed(m *Model) time.Time {
	info, err := os.Stat(s.usedAt(m))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
