package turn

// A Kind says what an Event is about.
type Kind uint8

// The kinds of Event.
const (
	Text          Kind = iota // Text is a piece of the answer
	Reasoning                 // Text is a piece of the thought
	CallBegin                 // a call of the tool Name has begun; ID where the model has named the call by now
	CallArguments             // Text is a piece of the call's arguments, which are JSON
	CallEnd                   // the call is complete; ID where the model has named it
	CallBroken                // the call is malformed or cut off: Text is what the model wrote of it
)

var kindNames = [...]string{"text", "reasoning", "call begin", "call arguments", "call end", "call broken"}

func (k Kind) String() string { return kindNames[k] }

// An Event is a piece of a turn. Call counts the calls of the turn from 0.
//
// A call streams as soon as its name is known. When it turns out to be
// malformed after that, its arguments are not JSON, and CallBroken holds all of
// its text, so that it can still be shown. A malformed call whose name is not
// known yet is Text.
type Event struct {
	Kind Kind
	Text string
	Call int
	Name string
	ID   string
}
