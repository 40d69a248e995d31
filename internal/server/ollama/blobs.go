package ollama

import (
	"fmt"
	"io"
	"net/http"

	"github.com/realizar/realizar/internal/server"
)

// hasBlob is HEAD /api/blobs/{digest}.
func hasBlob(x *server.Exchange) error {
	store, err := x.Server.Store()
	if err != nil {
		return err
	}
	digest := x.PathValue("digest")
	switch there, err := store.HasBlob(digest); {
	case err != nil:
		return err
	case !there:
		return &server.StoreError{Fault: server.NoBlob, Message: fmt.Sprintf("there is no file %.100q", digest)}
	}
	x.Empty(http.StatusOK)
	return nil
}

// addBlob is POST /api/blobs/{digest}, whose body is the file. One that is there is not read.
func addBlob(x *server.Exchange) error {
	store, err := x.Server.Store()
	if err != nil {
		return err
	}
	digest := x.PathValue("digest")
	switch there, err := store.HasBlob(digest); {
	case err != nil:
		return err
	case there:
		x.Empty(http.StatusOK)
		return nil
	}
	if err := x.Upload(func(body io.Reader) error { return store.AddBlob(x.Work(), digest, body, x.ContentLength) }); err != nil {
		return err
	}
	x.Empty(http.StatusCreated)
	return nil
}
