package check

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/plan"
)

// ErrDiffers reports that a device did not compute what it should have.
var ErrDiffers = errors.New("the device computed something else")

// A TokenError reports that a device sampled another token than the host does from the same logits.
type TokenError struct {
	Step     int // from 1
	Position int // absolute position of the token that the logits belong to
	Greedy   bool

	Device, Host           int32 // the tokens; -1: none
	DeviceLogit, HostLogit float32
	Err                    error // why the host samples none
}

func (e *TokenError) Error() string {
	how := "with the request's sampling"
	if e.Greedy {
		how = "the largest"
	}
	host := fmt.Sprintf("the host chooses %d with %v, %s", e.Host, e.HostLogit, how)
	if e.Err != nil {
		host = fmt.Sprintf("the host chooses none: %v", e.Err)
	}
	return fmt.Sprintf("%v: step %d, position %d: the kernel that samples tokens chose %d with the logit %v; from the same logits %s",
		ErrDiffers, e.Step, e.Position, e.Device, e.DeviceLogit, host)
}

// Unwrap returns [ErrDiffers].
func (e *TokenError) Unwrap() error { return ErrDiffers }

// A DriftError reports a value that is further from the reference's than rounding explains.
type DriftError struct {
	// Nodes are the operations since the last compared values. The value is that of the last one.
	Nodes    []*plan.Node
	Step     int // from 1
	Position int // absolute position of the token
	Row      int // of the value
	Column   int

	Value, Reference float32
	Bound            float32 // how far a correct device may be from the reference
}

func (e *DriftError) Error() string {
	return fmt.Sprintf("%v: step %d, position %d: %s: row %d, column %d is %v, the reference has %v: they are %.3g apart, and rounding explains %.3g",
		ErrDiffers, e.Step, e.Position, e.Where(), e.Row, e.Column, e.Value, e.Reference, abs(e.Value-e.Reference), e.Bound)
}

// Unwrap returns [ErrDiffers].
func (e *DriftError) Unwrap() error { return ErrDiffers }

// Where returns the places of the operations in the model, in words.
func (e *DriftError) Where() string {
	s := ""
	for i, n := range e.Nodes {
		if i > 0 {
			s += ", "
		}
		s += n.Where()
		if ws := n.Matrices(); n.Weight == nil && len(ws) > 0 {
			s += " of " + ws[0].Name + " and others"
		}
	}
	return s
}

func abs(x float32) float32 { return max(x, -x) }
