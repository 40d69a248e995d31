package turn

// A Form describes how a model writes a turn. It is plain data. Marks include the white space that
// the template writes around them. A parser accepts any amount of white space there, including
// none.
type Form struct {
	// Family names the built-in form. It is empty if the form was derived from the template alone.
	Family string `json:",omitempty"`
	// Start is the text that the template writes before a turn, and End the text after it.
	Start string
	End   string `json:",omitempty"`

	Content   ContentForm
	Reasoning ReasoningForm
	Calls     CallForm
}

// A ContentForm describes how the text of the answer is marked in a turn.
type ContentForm struct {
	Begin string `json:",omitempty"`
	End   string `json:",omitempty"`
	// TrimLeft and TrimRight say what the template strips from the text.
	TrimLeft  Trim `json:",omitempty"`
	TrimRight Trim `json:",omitempty"`
}

// A Trim says which white space a template strips from the end of a text.
type Trim string

// The kinds of Trim.
const (
	TrimNone     Trim = ""
	TrimNewlines Trim = "newlines"
	TrimSpace    Trim = "space"
)

// A ReasoningForm describes how reasoning is marked in a turn. The zero value is a template without
// reasoning.
type ReasoningForm struct {
	Begin     string `json:",omitempty"`
	End       string `json:",omitempty"`
	TrimLeft  Trim   `json:",omitempty"`
	TrimRight Trim   `json:",omitempty"`
	// Open says that prompts end inside the reasoning by default.
	Open bool `json:",omitempty"`
	// Variable is the template's variable that turns reasoning on (true) and off (false). It is
	// empty if there is none.
	Variable string `json:",omitempty"`
	// Default, On and Off are the ends of prompts, after Start, with Variable unset, true and
	// false.
	Default string `json:",omitempty"`
	On      string `json:",omitempty"`
	Off     string `json:",omitempty"`
}

// A Syntax is the notation of a call's arguments.
type Syntax string

// The notations of arguments.
const (
	SyntaxNone    Syntax = ""
	SyntaxJSON    Syntax = "json"        // a JSON object
	SyntaxString  Syntax = "json string" // a JSON string that holds a JSON object
	SyntaxTagged  Syntax = "tagged"      // keys and values between tags, strings unquoted
	SyntaxPython  Syntax = "python"      // a="x", b=[1, True]
	SyntaxBraces  Syntax = "braces"      // a:<quote>x<quote>,b:[1,true]
	SyntaxHarmony Syntax = "harmony"     // channels and recipients of gpt-oss; no other field of Calls is used
)

// A CallForm describes how tool calls are written in a turn. The zero value is a template without
// calls.
//
// Call and Argument are texts with the placeholders «name», «id», «index»,
// «arguments», «key» and «value».
type CallForm struct {
	Syntax Syntax `json:",omitempty"`
	// Begin and End enclose all calls of a turn. They may be empty.
	Begin string `json:",omitempty"`
	End   string `json:",omitempty"`
	// Call is the pattern of one call. Its id may be «id», which the model makes up, or «index»,
	// the number of the call from 0.
	Call      string `json:",omitempty"`
	Separator string `json:",omitempty"` // between calls
	// IDPrefix is set if a call's id is composed of IDPrefix, the name, the text after the name,
	// and the index, as in functions.f:0.
	IDPrefix string `json:",omitempty"`
	// Several says that a turn may have more than one call.
	Several bool `json:",omitempty"`
	// Optional is a mark without meaning that may come before the calls.
	Optional string `json:",omitempty"`
	// After says that text may follow the calls.
	After bool `json:",omitempty"`

	// Argument is the pattern of an argument in a tagged form, and OtherArgument that of one that
	// is not a string, if the form marks these.
	Argument          string `json:",omitempty"`
	OtherArgument     string `json:",omitempty"`
	ArgumentSeparator string `json:",omitempty"`
	// Quote encloses strings in braces.
	Quote string `json:",omitempty"`
	// Values is the notation in which the template writes values in a tagged form: json, or python
	// for True and None.
	Values Syntax `json:",omitempty"`
	// Lists is the same for lists and objects.
	Lists Syntax `json:",omitempty"`
}

// The placeholders in Call and Argument.
const (
	holdName      = "«name»"
	holdID        = "«id»"
	holdIndex     = "«index»"
	holdArguments = "«arguments»"
	holdKey       = "«key»"
	holdValue     = "«value»"
)

// HasCalls reports whether f says how calls are written.
func (f *Form) HasCalls() bool { return f.Calls.Syntax != SyntaxNone }

// HasReasoning reports whether f says how reasoning is marked.
func (f *Form) HasReasoning() bool {
	return f.Reasoning.End != "" || f.Calls.Syntax == SyntaxHarmony
}
