//go:build ptxfolder

package kernels

import "os"

// files reads kernels on demand from the folder that REALIZAR_KERNELS names, this package's source
// folder. It keeps test binaries small that are copied to a machine with a GPU.
var files = os.DirFS(os.Getenv("REALIZAR_KERNELS"))
