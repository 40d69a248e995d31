//go:build !ptxfolder

package kernels

import (
	"embed"
	"io/fs"
)

//go:embed ptx/*.ptx.gz
var embedded embed.FS

var files fs.FS = embedded
