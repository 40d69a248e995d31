package ollama

import (
	"fmt"
	"io"
	"net/http"

	"github.com/realizar/realizar/internal/server"
)

// blob returns the store, the digest that the path names, and whether the store has that file.
func blob(x *server.Exchange) (store server.Store, digest string, there bool, err error) {
	if store, err = x.Server.Store(); err != nil {
		return nil, "", false, err
	}
	digest = x.PathValue("digest")
	there, err = store.HasBlob(digest)
	return store, digest, there, err
}

// hasBlob is HEAD /api/blobs/{digest}.
func hasBlob(x *server.Exchange) error {
	switch _, digest, there, err := blob(x); {
	case err != nil:
		return err
	case !there:
		return &server.StoreError{Fault: server.NoBlob, Message: fmt.Sprintf("there is no file %.100q", digest)}
	}
	x.Empty(http.StatusOK)
	return nil
}

// addBlob is POST /api/blobs/{digest}, whose body is the file. If the store has the file, the body is
// not read.
func addBlob(x *server.Exchange) error {
	store, digest, there, err := blob(x)
	switch {
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
