package vllm

import "github.com/realizar/realizar/internal/server"

// version handles GET /version, with the program's version.
func version(x *server.Exchange) error {
	return x.JSON(map[string]string{"version": x.Server.Version(), "server": "realizar"})
}
