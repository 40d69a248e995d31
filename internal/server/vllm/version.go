package vllm

import (
	"runtime/debug"

	"github.com/realizar/realizar/internal/server"
)

// version is GET /version: that of the program.
func version(x *server.Exchange) error {
	text := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		text = info.Main.Version
	}
	return x.JSON(map[string]string{"version": text, "server": "realizar"})
}
