//go:build !windows && (!unix || solaris || aix)

package store

import "os"

// lockFile does nothing on systems without locks that end with their process.
func lockFile(*os.File, bool, bool) error { return nil }

func unlockFile(*os.File) {}
