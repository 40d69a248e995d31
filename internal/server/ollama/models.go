package ollama

import (
	"time"

	"github.com/realizar/realizar/internal/server"
)

// spoken is the version of Ollama whose API this is: clients ask for one that is new enough.
const spoken = "0.17.4"

// root is GET /, by which clients see that a server is there.
func root(x *server.Exchange) error {
	s := x.Stream("text/plain; charset=utf-8", func(e *server.Error) error { return e })
	s.Add([]byte("Ollama is running"))
	return s.Flush()
}

// version is GET /api/version.
func version(x *server.Exchange) error {
	return x.JSON(map[string]string{"version": spoken, "server": "realizar"})
}

// A modelEntry is a model as lists have it.
type modelEntry struct {
	Name       string    `json:"name"`
	Model      string    `json:"model"`
	ModifiedAt time.Time `json:"modified_at"`
	Size       int64     `json:"size"`
	Digest     string    `json:"digest"`
	Details    details   `json:"details"`
}

// tags is GET /api/tags.
func (c *catalog) tags(x *server.Exchange) error {
	is := c.of(x.Server.Model())
	list := []modelEntry{}
	for _, name := range x.Server.Names() {
		list = append(list, modelEntry{
			Name: tagged(name), Model: tagged(name), ModifiedAt: x.Server.Created(), Size: is.size, Digest: is.digest, Details: is.details,
		})
	}
	return x.JSON(map[string]any{"models": list})
}

// A runningEntry is a model as it runs.
type runningEntry struct {
	Name      string    `json:"name"`
	Model     string    `json:"model"`
	Size      int64     `json:"size"`
	Digest    string    `json:"digest"`
	Details   details   `json:"details"`
	ExpiresAt time.Time `json:"expires_at"`
	SizeVRAM  int64     `json:"size_vram"`
	Context   int       `json:"context_length"`
}

// never is when a model goes that stays.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// running is GET /api/ps.
func (c *catalog) running(x *server.Exchange) error {
	m := x.Server.Model()
	is := c.of(m)
	size, device := is.size, int64(0)
	switch s := m.Streaming(); {
	case m.Device() == "cpu":
		size = max(size, m.HostMemory())
	case s != nil:
		device = s.Resident
	default:
		device = size
	}
	list := []runningEntry{}
	for _, name := range x.Server.Names() {
		list = append(list, runningEntry{
			Name: tagged(name), Model: tagged(name), Size: size, Digest: is.digest, Details: is.details, ExpiresAt: never, SizeVRAM: device, Context: m.Context(),
		})
	}
	return x.JSON(map[string]any{"models": list})
}
