package store

import (
	"fmt"
	"os"
	"path/filepath"
)

// A SpaceError reports a disk without room for Want bytes.
type SpaceError struct {
	Folder     string
	Want, Free int64
	Variable   string // the environment variable that chooses the folder
}

// Error returns both numbers and the ways out.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("the disk of %s has %s free, and %s are to come: remove something (realizar list, rm and gc), or set %s to a folder on a larger disk",
		e.Folder, sizeText(e.Free), sizeText(e.Want), e.Variable)
}

func sizeText(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// checkSpace returns an error if the disk of folder has no room for want bytes. The folder need not
// exist.
func checkSpace(folder string, want int64, variable string) error {
	at := folder
	for {
		if _, err := os.Stat(at); err == nil || filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	if free, ok := freeSpace(at); ok && free < want {
		return &SpaceError{Folder: folder, Want: want, Free: free, Variable: variable}
	}
	return nil
}
