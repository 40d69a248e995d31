package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/realizar/realizar"
)

// A Store keeps the models of this machine, served or not, for clients that may change what
// it has. Names come from clients as they write them. Errors that clients are told are
// [StoreError]; of others they are told that the server failed.
type Store interface {
	// List returns the models by name. Their descriptions have neither tensors nor long
	// arrays of metadata.
	List(ctx context.Context) ([]*Stored, error)
	// Find returns the model of that name.
	Find(ctx context.Context, name string) (*Stored, error)
	// Describe says what the files of a model say.
	Describe(ctx context.Context, name string) (*realizar.Description, error)
	// Pull fetches a model from where its name leads. Clients that pull the same model share
	// one pull, which ends when all of them have left.
	Pull(ctx context.Context, name string, progress func(Progress) error) error
	// Push gives a model to the registry that its name leads to.
	Push(ctx context.Context, name string, progress func(Progress) error) error
	// Copy gives a model another name.
	Copy(ctx context.Context, from, to string) error
	// Create makes a model of files by their names in it, which are digests that AddBlob was
	// called with.
	Create(ctx context.Context, name string, files map[string]string, progress func(Progress) error) error
	// Delete removes a model that is not loaded.
	Delete(ctx context.Context, name string) error
	// HasBlob reports whether there is a file with that digest for Create.
	HasBlob(digest string) (bool, error)
	// AddBlob keeps what r brings, size bytes or, where that is -1, as many as come.
	AddBlob(ctx context.Context, digest string, r io.Reader, size int64) error
}

// A Stored model is one of a [Store].
type Stored struct {
	Name        string // with its tag
	Digest      string // of its files, 64 hexadecimal digits
	Size        int64  // bytes
	Modified    time.Time
	Description *realizar.Description // nil where its files cannot be read
}

// A Progress is how far a pull, a push or the making of a model is.
type Progress struct {
	Phase     Phase
	Digest    string // of the file that Completed bytes of Total have come of, in Transfer
	Total     int64
	Completed int64
}

// A Phase is a part of a pull, a push or the making of a model.
type Phase int

// The phases in their order.
const (
	ReadManifest  Phase = iota // what files belong to the model is asked
	Transfer                   // files come or go
	Verify                     // the last of them are compared with their digests
	WriteManifest              // the model gets its name
)

// A StoreError is why a [Store] does not do what a client asks.
type StoreError struct {
	Fault   StoreFault
	Message string
}

func (e *StoreError) Error() string { return e.Message }

// A StoreFault is a kind of [StoreError].
type StoreFault int

// The faults.
const (
	NoModel    StoreFault = iota // there is no model of that name
	NotAName                     // the name is none, or of a kind that cannot be used so
	NotAModel                    // the files are no model
	NoBlob                       // there is no file with that digest
	WrongBlob                    // a file has another digest
	NotAllowed                   // the host or the model is not one for clients
	InUse                        // the model is loaded
	StoreBusy                    // too much is under way, or something that excludes this
	NoSpace                      // the disk has no room
	NoRegistry                   // the other side does not do it
)

// storeErrors are what faults are answered with.
var storeErrors = map[StoreFault]Error{
	NoModel:    {Status: http.StatusNotFound, Code: "model_not_found"},
	NotAName:   {Status: http.StatusBadRequest, Code: "invalid_name"},
	NotAModel:  {Status: http.StatusBadRequest, Code: "not_a_model"},
	NoBlob:     {Status: http.StatusNotFound, Code: "blob_not_found"},
	WrongBlob:  {Status: http.StatusBadRequest, Code: "wrong_digest"},
	NotAllowed: {Status: http.StatusForbidden, Code: "not_allowed"},
	InUse:      {Status: http.StatusConflict, Code: "model_in_use"},
	StoreBusy:  {Status: http.StatusTooManyRequests, Code: "store_busy", RetryAfter: 1},
	NoSpace:    {Status: http.StatusInsufficientStorage, Code: "disk_full"},
	NoRegistry: {Status: http.StatusBadGateway, Code: "registry_failed"},
}

// storeError is an error of the store as it is answered; nil: it is another.
func storeError(err error) *Error {
	var e *StoreError
	if !as(err, &e) {
		return nil
	}
	answer := storeErrors[e.Fault]
	answer.Message = e.Message
	return &answer
}

// errNotManaged is that clients may not change the models.
var errNotManaged = &Error{Status: http.StatusForbidden, Code: "models_not_managed",
	Message: "this server does not let clients fetch, copy, create or delete models; realizar serve --manage-models lets them"}

// Store is what clients may change, or an error that names the flag that lets them.
func (s *Server) Store() (Store, error) {
	if s.config.Store == nil {
		return nil, errNotManaged
	}
	return s.config.Store, nil
}

// unknown is err, that no model of that name is served, with a hint where the store has it.
func (x *Exchange) unknown(name string, err error) error {
	if x.Server.config.Store == nil {
		return err
	}
	if _, absent := x.Server.config.Store.Find(x.work, name); absent != nil {
		return err
	}
	return &Error{Status: http.StatusNotFound, Param: "model", Code: "model_not_found",
		Message: fmt.Sprintf("%v; the model is on this machine and is not served: realizar serve has to name it", err)}
}

// uploadPiece is how much of an upload has the time that a body has, so that who sends a byte
// now and then does not keep others from their turn.
const uploadPiece = 1 << 20

// Upload calls take with the body of the request, of any length, of which nothing is kept in
// memory. Each MiB of it has the time that a body has.
func (x *Exchange) Upload(take func(body io.Reader) error) error {
	u, done := &upload{x: x}, make(chan struct{})
	stop := context.AfterFunc(x.work, func() {
		defer close(done)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.ended = true
		x.readBy(0)
	})
	defer func() {
		if !stop() {
			<-done
		}
	}()
	return take(u)
}

// An upload reads a body piece by piece.
type upload struct {
	x     *Exchange
	mu    sync.Mutex
	ended bool // the work for the request has
	left  int  // bytes of the piece that is coming
}

// wait gives the client time for the next piece, where the last one has come.
func (u *upload) wait() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return context.Cause(u.x.work)
	}
	if u.left <= 0 {
		u.left = uploadPiece
		u.x.readBy(u.x.settings.deadlines.Body)
	}
	return nil
}

func (u *upload) Read(p []byte) (int, error) {
	if err := u.wait(); err != nil {
		return 0, err
	}
	n, err := u.x.Body.Read(p)
	u.x.size += n
	u.left -= n
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		u.x.came()
		_ = http.NewResponseController(u.x.w).SetReadDeadline(time.Time{})
	case u.x.work.Err() != nil && !errors.Is(context.Cause(u.x.work), context.Canceled): // which is that reading failed
		err = context.Cause(u.x.work)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &Error{Status: http.StatusBadRequest, Code: "body_timeout",
			Message: fmt.Sprintf("less than %d bytes of the body arrived within %v", uploadPiece, u.x.settings.deadlines.Body)}
	default:
		err = &Error{Status: http.StatusBadRequest, Code: "body_incomplete", Message: "the body ended early: " + err.Error()}
	}
	return n, err
}

// Empty answers with a status alone.
func (x *Exchange) Empty(status int) { x.w.WriteHeader(status) }
