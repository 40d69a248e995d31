//go:build !windows && (!unix || solaris || aix)

package store

import "os"

// lockFile does nothing where there is no lock that ends with its process.
func lockFile(*os.File, bool, bool) error { return nil }

func unlockFile(*os.File) {}
