package pool

import (
	"errors"
	"fmt"
	"time"

	"github.com/realizar/realizar/internal/bytesize"
)

// ErrUnloaded reports that a model was unloaded while it was being loaded.
var ErrUnloaded = errors.New("pool: the model was unloaded while it was being loaded; retry to load it")

// ErrClosed reports that the pool is closed.
var ErrClosed = errors.New("pool: closed")

// An UnknownError reports a name that no model has.
type UnknownError struct {
	Name  string
	Names []string // of all models
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("model %.100q not found; the models are %q", e.Name, e.Names)
}

// A MemoryError reports that a model cannot have the memory that it needs.
type MemoryError struct {
	Model  string
	Device string        // empty if the need is not known yet
	Needs  int64         // bytes
	Limit  int64         // of the device, for all models
	Pinned int64         // bytes of other models that are pinned
	Used   int64         // bytes of all loaded models
	Waited time.Duration // 0: waiting would not help
}

// Forever reports whether waiting does not help.
func (e *MemoryError) Forever() bool { return e.Waited == 0 }

func (e *MemoryError) Error() string {
	switch {
	case !e.Forever() && e.Device == "":
		return fmt.Sprintf("model %.100q waited %v and its need is not known yet; ask again later", e.Model, e.Waited)
	case !e.Forever():
		return fmt.Sprintf("model %.100q waited %v for %s of %s; models have %s of %s, in use or promised to others; ask again later",
			e.Model, e.Waited, bytesize.Text(e.Needs), e.Device, bytesize.Text(e.Used), bytesize.Text(e.Limit))
	case e.Pinned > 0:
		return fmt.Sprintf("model %.100q needs %s of %s, and pinned models leave %s of %s; unload one of them, or give it a smaller context",
			e.Model, bytesize.Text(e.Needs), e.Device, bytesize.Text(e.Limit-e.Pinned), bytesize.Text(e.Limit))
	}
	return fmt.Sprintf("model %.100q needs %s of %s, and all models together may take %s; give it a smaller context, or give the models more memory",
		e.Model, bytesize.Text(e.Needs), e.Device, bytesize.Text(e.Limit))
}

// A QueueError reports that too many callers wait for models.
type QueueError struct {
	Model          string
	Waiting, Limit int
}

func (e *QueueError) Error() string {
	return fmt.Sprintf("%d requests wait for models to be loaded, and no more than %d may; ask again later for %.100q, or for a model that is ready", e.Waiting, e.Limit, e.Model)
}

// A LoadError reports that a model cannot be loaded.
type LoadError struct {
	Model string
	Err   error
	Again time.Duration // until the next attempt
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("model %.100q cannot be loaded: %v; the next attempt is in %v", e.Model, e.Err, e.Again.Round(time.Millisecond))
}

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// unknown returns an error for a name that no model has.
func (p *Pool[M]) unknown(name string) error {
	err := &UnknownError{Name: name}
	for _, e := range p.entries {
		if !e.removed {
			err.Names = append(err.Names, e.Name)
		}
	}
	return err
}
