//go:build ptxfolder

package kernels

import "os"

// files are read when they are needed, from the folder that REALIZAR_KERNELS names, where
// this package's sources lie. Test binaries that are carried to a GPU are small so.
var files = os.DirFS(os.Getenv("REALIZAR_KERNELS"))
