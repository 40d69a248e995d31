package modelfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

var (
	scheme  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)
	hubName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(:[\w.-]+)?$`)
)

// refuseRemote returns an error if path is the address of a remote model.
func refuseRemote(path string) error {
	s := scheme.FindString(path)
	if s == "" {
		return nil
	}
	return fmt.Errorf("modelfile: %s: %w: %s begins an address, but realizar reads local files; download the model first and give the path of its file or folder",
		path, ErrNotModel, s)
}

// meantForHub reports whether a path that does not exist looks like the name of a model on a hub.
// If its folder exists, a typing mistake is more likely.
func meantForHub(path string) bool {
	_, err := os.Lstat(filepath.Dir(path))
	return errors.Is(err, fs.ErrNotExist) && hubName.MatchString(path)
}
