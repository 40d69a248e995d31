package turn

// A Kind says what an Event is about.
type Kind uint8

// The kinds of Event.
const (
	Text          Kind = iota // Text is a piece of the answer
	Reasoning                 // Text is a piece of the reasoning
	CallBegin                 // a call of the tool Name begins; ID is set if the model has written it by now
	CallArguments             // Text is a piece of the call's arguments, which are JSON
	CallEnd                   // the call is complete; ID is set if the model has written it
	CallBroken                // the call is malformed or cut off; Text is the model's output for it
)

var kindNames = [...]string{"text", "reasoning", "call begin", "call arguments", "call end", "call broken"}

func (k Kind) String() string { return kindNames[k] }

// An Event is a piece of a turn. Call is the number of the call in the turn, from 0.
//
// A call is streamed as soon as its name is known. If it turns out to be malformed later, the
// arguments so far are not valid JSON, and a CallBroken event has the whole text of the call, so
// that it can be shown. A call that is malformed before its name is known is Text.
type Event struct {
	Kind Kind
	Text string
	Call int
	Name string
	ID   string
}
