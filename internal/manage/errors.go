package manage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/store"
)

func fault(f server.StoreFault, format string, a ...any) error {
	return &server.StoreError{Fault: f, Message: fmt.Sprintf(format, a...)}
}

// told is an error about the model of that name as a client is told of it. What clients need
// not know, such as where models lie, is left as it is, for the log alone.
func (m *Manager) told(name string, err error) error {
	var own *server.StoreError
	var space *store.SpaceError
	switch {
	case errors.As(err, &own):
		return err
	case errors.As(err, &space):
		return fault(server.NoSpace, "the server's disk has %d bytes free, and %d are to come", space.Free, space.Want)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault(server.NoSpace, "the server's disk is full; what has come is kept")
	case errors.Is(err, store.ErrAbsent):
		return fault(server.NoModel, "model %.200q not found", name)
	case errors.Is(err, store.ErrPulled):
		return fault(server.StoreBusy, "%.200q: models are being fetched or made, and none is deleted meanwhile; try again when that has ended", name)
	case errors.Is(err, store.ErrForeign):
		return fault(server.NotAllowed, "%.200q is Ollama's own, which realizar does not change", name)
	case errors.Is(err, store.ErrDigest):
		return fault(server.WrongBlob, "%v", err)
	case errors.Is(err, names.ErrNoModel):
		return fault(server.NotAModel, "%v", err)
	}
	return err
}

// toldBy is told of an error of a registry, of which a client is told all that is not about
// this machine.
func (m *Manager) toldBy(name string, err error) error {
	var own *server.StoreError
	var status *fetch.StatusError
	var path *fs.PathError
	var link *os.LinkError
	err = m.told(name, err)
	switch {
	case errors.As(err, &own), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, fetch.ErrUnreachable):
	case errors.As(err, &path), errors.As(err, &link), m.says(err):
		return err
	case errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusUnauthorized):
		return fault(server.NoModel, "%v", err)
	}
	return fault(server.NoRegistry, "%v", err)
}

// says reports whether an error says where models lie.
func (m *Manager) says(err error) bool {
	return slices.ContainsFunc(append([]string{m.store.Hub, m.store.Own}, m.store.Ollama...), func(folder string) bool {
		return folder != "" && strings.Contains(err.Error(), folder)
	})
}
