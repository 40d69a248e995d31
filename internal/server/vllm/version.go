package vllm

import "github.com/realizar/realizar/internal/server"

// version is GET /version: that of the program.
func version(x *server.Exchange) error {
	return x.JSON(map[string]string{"version": x.Server.Version(), "server": "realizar"})
}
