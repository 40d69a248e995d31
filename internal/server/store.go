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

// A Store manages the models of this machine, served or not, for clients that may change them.
// Names are as the clients write them. A [StoreError] is shown to the client; of any other error
// the client learns only that the server failed.
type Store interface {
	// List returns the models in order of name. Their descriptions have neither tensors nor long
	// arrays of metadata.
	List(ctx context.Context) ([]*Stored, error)
	// Find returns the model of that name.
	Find(ctx context.Context, name string) (*Stored, error)
	// Describe describes a model from its files.
	Describe(ctx context.Context, name string) (*realizar.Description, error)
	// Pull fetches a model from the registry in its name. Clients that pull the same model share
	// one pull, which ends when all of them have left.
	Pull(ctx context.Context, name string, progress func(Progress) error) error
	// Push uploads a model to the registry in its name.
	Push(ctx context.Context, name string, progress func(Progress) error) error
	// Copy gives a model another name.
	Copy(ctx context.Context, from, to string) error
	// Create makes a model of files. It maps their names in the model to digests of files that
	// AddBlob has added.
	Create(ctx context.Context, name string, files map[string]string, progress func(Progress) error) error
	// Delete removes a model that is not loaded.
	Delete(ctx context.Context, name string) error
	// HasBlob reports whether Create can use a file with that digest.
	HasBlob(digest string) (bool, error)
	// AddBlob stores the data of r, size bytes, or up to the end of r if size is -1.
	AddBlob(ctx context.Context, digest string, r io.Reader, size int64) error
}

// A Stored model is one of a [Store].
type Stored struct {
	Name        string // with its tag
	Digest      string // of its files, 64 hexadecimal digits
	Size        int64  // bytes
	Modified    time.Time
	Description *realizar.Description // nil if the files cannot be read
}

// A Progress is the progress of a pull, a push or the creation of a model.
type Progress struct {
	Phase     Phase
	Digest    string // in Transfer, of the file of which Completed of Total bytes are transferred
	Total     int64
	Completed int64
}

// A Phase is a phase of a pull, a push or the creation of a model.
type Phase int

// The phases in their order.
const (
	ReadManifest  Phase = iota // get the list of the model's files
	Transfer                   // download or upload the files
	Verify                     // compare the last files with their digests
	WriteManifest              // name the model
)

// A StoreError reports why a [Store] refuses a client's request.
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
	NotAName                     // the name is invalid, or of a kind that cannot be used here
	NotAModel                    // the files are not a model
	NoBlob                       // there is no file with that digest
	WrongBlob                    // a file has another digest
	NotAllowed                   // clients may not use the host or the model
	InUse                        // the model is loaded
	StoreBusy                    // too many operations are under way, or one that excludes this one
	NoSpace                      // the disk has no room
	NoRegistry                   // the registry failed
)

// storeErrors maps faults to answers.
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

// storeError returns the answer to an error of the store; nil for other errors.
func storeError(err error) *Error {
	var e *StoreError
	if !as(err, &e) {
		return nil
	}
	answer := storeErrors[e.Fault]
	answer.Message = e.Message
	return &answer
}

// errNotManaged reports that clients may not change the models.
var errNotManaged = &Error{Status: http.StatusForbidden, Code: "models_not_managed",
	Message: "this server does not let clients fetch, copy, create or delete models; realizar serve --manage-models lets them"}

// Store returns the store that clients may change, or an error that names the flag that allows it.
func (s *Server) Store() (Store, error) {
	if s.config.Store == nil {
		return nil, errNotManaged
	}
	return s.config.Store, nil
}

// unknown returns err, which says that no served model has the name, with a hint if the store has
// such a model.
func (x *Exchange) unknown(name string, err error) error {
	if x.Server.config.Store == nil {
		return err
	}
	if _, absent := x.Server.config.Store.Find(x.work, name); absent != nil {
		return err
	}
	return &Error{Status: http.StatusNotFound, Param: "model", Code: "model_not_found",
		Message: fmt.Sprintf("%v; the model is on this machine but not served; name it when you start realizar serve", err)}
}

// uploadPiece is the number of bytes of an upload that get the time limit of a whole body, so that
// a client that sends a byte now and then does not keep others waiting.
const uploadPiece = 1 << 20

// Upload calls take with the body of the request, which may have any length and is not kept in
// memory. Each MiB of it has the time limit of a whole body.
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
	ended bool // the work for the request has ended
	left  int  // bytes left of the current piece
}

// wait sets the deadline of the next piece if the last one has arrived.
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
	case u.x.work.Err() != nil && !errors.Is(context.Cause(u.x.work), context.Canceled): // the cause is that reading failed
		err = context.Cause(u.x.work)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &Error{Status: http.StatusBadRequest, Code: "body_timeout",
			Message: fmt.Sprintf("less than %d bytes of the body arrived within %v", uploadPiece, u.x.settings.deadlines.Body)}
	default:
		err = &Error{Status: http.StatusBadRequest, Code: "body_incomplete", Message: "the body ended early: " + err.Error()}
	}
	return n, err
}

// Empty answers with a status and no body.
func (x *Exchange) Empty(status int) { x.w.WriteHeader(status) }
