package pool

import (
	"errors"
	"fmt"
	"time"

	"github.com/realizar/realizar/internal/bytesize"
)

// ErrUnloaded is that a model was unloaded while it was being loaded.
var ErrUnloaded = errors.New("pool: the model was unloaded while it was being loaded; ask again to load it")

// ErrClosed is that a pool was closed.
var ErrClosed = errors.New("pool: closed")

// An UnknownError is a name that no model has.
type UnknownError struct {
	Name  string
	Names []string // that there are
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("model %.100q not found: there is %q here", e.Name, e.Names)
}

// A MemoryError is a model for which there is no memory.
type MemoryError struct {
	Model  string
	Device string        // empty where the need is not known
	Needs  int64         // bytes
	Limit  int64         // of the device, for all models
	Pinned int64         // of others that are pinned
	Used   int64         // of all that are there
	Waited time.Duration // 0: there was no use in waiting
}

// Forever reports whether waiting is of no use.
func (e *MemoryError) Forever() bool { return e.Waited == 0 }

func (e *MemoryError) Error() string {
	switch {
	case !e.Forever() && e.Device == "":
		return fmt.Sprintf("model %.100q waited %v and it is not known yet what it needs; ask again later", e.Model, e.Waited)
	case !e.Forever():
		return fmt.Sprintf("model %.100q waited %v for %s of %s, of which models have %s of %s, all in use or promised to others; ask again later",
			e.Model, e.Waited, bytesize.Text(e.Needs), e.Device, bytesize.Text(e.Used), bytesize.Text(e.Limit))
	case e.Pinned > 0:
		return fmt.Sprintf("model %.100q needs %s of %s, and models that are pinned leave %s of %s; unload one of these, or give it a smaller context",
			e.Model, bytesize.Text(e.Needs), e.Device, bytesize.Text(e.Limit-e.Pinned), bytesize.Text(e.Limit))
	}
	return fmt.Sprintf("model %.100q needs %s of %s, and all models may take %s; give it a smaller context, or models more memory",
		e.Model, bytesize.Text(e.Needs), e.Device, bytesize.Text(e.Limit))
}

// A QueueError is that too many wait.
type QueueError struct {
	Model          string
	Waiting, Limit int
}

func (e *QueueError) Error() string {
	return fmt.Sprintf("%d requests wait for models to be loaded, and %d may; ask again later for %.100q, or for a model that is ready", e.Waiting, e.Limit, e.Model)
}

// A LoadError is a model that cannot be loaded.
type LoadError struct {
	Model string
	Err   error
	Again time.Duration // from now, when it is tried again
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("model %.100q cannot be loaded: %v; a request is tried again in %v", e.Model, e.Err, e.Again.Round(time.Millisecond))
}

// Unwrap is what went wrong.
func (e *LoadError) Unwrap() error { return e.Err }

// unknown is that no model has that name.
func (p *Pool[M]) unknown(name string) error {
	err := &UnknownError{Name: name}
	for _, e := range p.entries {
		if !e.removed {
			err.Names = append(err.Names, e.Name)
		}
	}
	return err
}
